package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/words"
)

const (
	maxMistaken = 2 // words of a query that are corrected
	maxTried    = 3 // corrections of a word that are searched
)

const knownSQL = `select search_known(@queries::text[]::tsquery[], @most)`

// Suggest returns the text of a query that finds nothing with its mistaken words corrected, each by one letter; empty: no such text finds
// anything. Its work is bounded by the lengths of the words: it looks their corrections up in the index, and searches a few.
func (s *Store) Suggest(ctx context.Context, account protocol.AccountID, request *Query) (text string, err error) {
	f := s.finder(account, request)
	mistaken, err := f.mistaken(ctx)
	if err != nil || len(mistaken) == 0 || len(mistaken) > maxMistaken {
		return "", err
	}
	tries := make([]string, maxTried)
	for i := range tries {
		tries[i] = request.Text
	}
	most := maxTried
	if len(mistaken) > 1 {
		most = 1
	}
	for _, t := range mistaken {
		corrections, err := f.known(ctx, words.Corrections(t.tokens[0].text), most)
		if err != nil || len(corrections) == 0 {
			return "", err
		}
		for i := range tries {
			if i < len(corrections) {
				tries[i] = replaceWord(tries[i], t.raw, corrections[i])
			} else {
				tries[i] = ""
			}
		}
	}
	for _, try := range tries {
		if try == "" {
			break
		}
		corrected := *request
		corrected.Text, corrected.After, corrected.Limit = try, nil, 1
		found, _, err := s.Find(ctx, account, &corrected)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return asWritten(try, &found[0].Snippet), nil
		}
	}
	return "", nil
}

// mistaken returns the words of the query that no text has in any form.
func (f *finder) mistaken(ctx context.Context) (mistaken []term, err error) {
	query := f.query
	if f.loose != nil {
		query = *f.loose
	}
	var candidates []term
	var queries []string
	for _, t := range query.terms {
		if t.raw != "" && len(words.Corrections(t.tokens[0].text)) > 0 {
			candidates, queries = append(candidates, t), append(queries, f.anyKind(func(tag string) string { return t.tsquery(tag, true) }))
		}
	}
	known, err := f.lookUp(ctx, queries, len(queries))
	for i, t := range candidates {
		if !slices.Contains(known, i) {
			mistaken = append(mistaken, t)
		}
	}
	return mistaken, err
}

// known returns the first words that a text has, in their order.
func (f *finder) known(ctx context.Context, all []string, most int) (known []string, err error) {
	queries := make([]string, len(all))
	for i, word := range all {
		queries[i] = f.anyKind(func(tag string) string { return "'" + tag + word + "'" })
	}
	found, err := f.lookUp(ctx, queries, most)
	for _, i := range found {
		known = append(known, all[i])
	}
	return known, err
}

// anyKind writes a query for the objects of all kinds that the search finds.
func (f *finder) anyKind(query func(tag string) string) string {
	parts := make([]string, len(f.kinds))
	for i, kind := range f.kinds {
		parts[i] = query(tag(f.account, kind))
	}
	return strings.Join(parts, " | ")
}

// lookUp returns the indexes of the first queries that find a text of the account.
func (f *finder) lookUp(ctx context.Context, queries []string, most int) (found []int, err error) {
	if len(queries) == 0 {
		return nil, nil
	}
	found, err = pg.Rows(ctx, f.db, f.account, pgx.RowTo[int], knownSQL, pgx.NamedArgs{"queries": queries, "most": most})
	if err != nil {
		return nil, fmt.Errorf("looking words up: %w", err)
	}
	for i := range found {
		found[i]-- // Postgres counts from 1
	}
	return found, nil
}

// replaceWord replaces the first place at which a text has a word on its own.
func replaceWord(text, word, by string) string {
	fields := strings.Fields(text)
	if i := slices.Index(fields, word); i >= 0 {
		fields[i] = by
		return strings.Join(fields, " ")
	}
	return strings.Replace(text, word, by, 1)
}

// seen leaves out the places where a word may be divided, which are not seen.
func seen(c rune) rune {
	const softHyphen, noSpace, wordJoiner, mark = '\u00AD', '\u200B', '\u2060', '\uFEFF'
	switch c {
	case softHyphen, noSpace, wordJoiner, mark:
		return -1
	}
	return c
}

// asWritten returns a text with its words as an excerpt writes those that it highlights: with their accents.
func asWritten(text string, s *protocol.SearchSnippet) string {
	runes := []rune(s.Text)
	for _, h := range s.Highlights {
		written := strings.Map(seen, strings.ToLower(string(runes[h.Start:h.End])))
		tokens := words.Tokenize(written)
		if len(tokens) == 1 && tokens[0].Text != written {
			text = replaceWord(text, tokens[0].Text, written)
		}
	}
	return text
}
