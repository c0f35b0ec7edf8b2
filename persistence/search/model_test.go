package search

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"turnstone/protocol"
	"turnstone/protocol/words"
)

// The model of a search: it tokenizes whole texts. What reads a text piece by piece must find the same.

func tokensOf(texts []string) []words.Token {
	var t words.Tokenizer
	for i, text := range texts {
		if i > 0 {
			t.Gap(len(partSeparator))
		}
		t.Add(text)
	}
	return t.Tokens
}

func (t term) in(tokens []words.Token) bool {
	for i := range tokens {
		if _, found := t.at(tokens, i); found {
			return true
		}
	}
	return false
}

func (q *query) score(tokens []words.Token) int {
	missing := func(t term) bool { return !t.in(tokens) }
	if slices.ContainsFunc(q.terms, missing) || slices.ContainsFunc(q.excluded, func(t term) bool { return t.in(tokens) }) {
		return 0
	}
	score := scoreMatch
	if whole, distinguishes := q.whole(); distinguishes && whole.in(tokens) {
		score += scoreWhole
	}
	if adjacent, distinguishes := q.together(); distinguishes && adjacent.in(tokens) {
		score += scoreAdjacent
	}
	return score
}

func (q *query) occurrences(tokens []words.Token) []occurrence {
	var found []occurrence
	for n, t := range q.terms {
		count := 0
		for i := range tokens {
			if end, is := t.at(tokens, i); is && count < maxOccurrences {
				found = append(found, occurrence{n, tokens[i].Start, end})
				count++
			}
		}
	}
	slices.SortFunc(found, func(a, b occurrence) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	return found
}

func modelSnippet(texts []string, q *query) protocol.SearchSnippet {
	return snippet([]rune(strings.Join(texts, partSeparator)), false, q.occurrences(tokensOf(texts)))
}

// inPieces passes parts to a flow in pieces of these sizes, over and over.
func inPieces(f *flow, parts []string, sizes ...int) error {
	for _, part := range parts {
		if err := f.part(); err != nil {
			return ignoreEnough(err)
		}
		for i := 0; part != ""; i++ {
			size := min(sizes[i%len(sizes)], len(part))
			if err := f.write([]byte(part[:size])); err != nil {
				return ignoreEnough(err)
			}
			part = part[size:]
		}
	}
	return ignoreEnough(f.end())
}

func scoreOf(t testing.TB, q *query, sizes []int, parts ...string) int {
	t.Helper()
	s := q.scoring(t.Context())
	if err := inPieces(&s.flow, parts, sizes...); err != nil {
		t.Fatal(err)
	}
	score, loose := s.score()
	if loose {
		return 0
	}
	return score
}

func snippetOf(t testing.TB, q *query, sizes []int, parts ...string) protocol.SearchSnippet {
	t.Helper()
	e := q.excerpt(t.Context())
	if err := inPieces(&e.flow, parts, sizes...); err != nil {
		t.Fatal(err)
	}
	s, _ := e.snippet()
	return s
}

func TestATextInPiecesIsFoundAsTheWholeText(t *testing.T) {
	vocabulary := []string{"a", "ab", "abc", "Über", "u\u0308ber", "東京", "京", "東京都の", "ｶﾞ", "ガ", "ก", "\u0301", "\u0301\u0301", "-", "\n", "😀", "C++", "fooBar", ".net", "\xff", "é", "a\u0301", "foo_bar", "\x00", strings.Repeat("w", 70), strings.Repeat(". ", 50), strings.Repeat("\u0301", 40)}
	some := rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 40)
	rapid.Check(t, func(r *rapid.T) {
		q := parse(strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(vocabulary, ` "a ab" `, ` -ab `, ` "東京 a`, "b ")), 1, 5).Draw(r, "query"), rapid.SampledFrom([]string{" ", ""}).Draw(r, "query separator")))
		if len(q.terms) == 0 {
			return
		}
		var parts, whole []string
		for range rapid.IntRange(1, 3).Draw(r, "parts") {
			part := strings.Join(some.Draw(r, "words"), rapid.SampledFrom([]string{" ", ""}).Draw(r, "separator"))
			parts, whole = append(parts, part), append(whole, words.Normalize(part))
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 30), 1, 4).Draw(r, "sizes")
		tokens := tokensOf(whole)
		if got, want := scoreOf(t, &q, sizes, parts...), q.score(tokens); got != want {
			r.Fatalf("the score is %d, want %d", got, want)
		}
		got, want := snippetOf(t, &q, sizes, parts...), modelSnippet(whole, &q)
		if got.Text != want.Text || !slices.Equal(got.Highlights, want.Highlights) {
			r.Fatalf("the excerpt is %+v, want %+v", got, want)
		}
		i := newIndexing(t.Context(), &document{Kind: protocol.SearchMessage})
		if err := inPieces(&i.flow, parts, sizes...); err != nil {
			r.Fatal(err)
		}
		v := newVector(protocol.AccountID{}, protocol.SearchMessage)
		v.add(tokens)
		i.order = slices.DeleteFunc(i.order, words.IsForm) // the model has the words themselves only
		if got, want := i.String(), v.String(); got != want {
			r.Fatalf("indexed as %s, want %s", got, want)
		}
	})
}

// longText is a text of a size of words that no query has, in which some words are at some places.
func longText(size int, at map[int]string) string {
	b := []byte(strings.Repeat("filler words, ", size/len("filler words, ")+1)[:size])
	for place, word := range at {
		copy(b[place:], " "+word+" ")
	}
	return string(b)
}

func TestAnExcerptOfALongTextIsAroundTheFirstPlaces(t *testing.T) {
	const size = 4 << 20
	for name, c := range map[string]struct {
		at     map[int]string
		query  string
		marked []string
	}{
		"at the start":          {map[int]string{0: "needle"}, "needle", []string{"needle"}},
		"in the middle":         {map[int]string{size / 2: "needle"}, "nee", []string{"needle"}},
		"at the end":            {map[int]string{size - 8: "needle"}, "needle", []string{"needle"}},
		"a phrase":              {map[int]string{9: "blue sky", size / 3: "sky blue"}, `"sky blue"`, []string{"sky blue"}},
		"the best of the first": {map[int]string{1 << 20: "sky", 1<<20 + 5000: "blue sky"}, "blue sky", []string{"blue", "sky"}},
		"only one of the words": {map[int]string{1 << 20: "sky", 3 << 20: "blue"}, "blue sky", []string{"sky"}},
		"an emoji and its skin": {map[int]string{0: "👍🏽"}, "👍", []string{"👍🏽"}},
		"a part of a family":    {map[int]string{0: "👩‍👩🏽‍👧"}, "👧", []string{"👩‍👩🏽‍👧"}},
		"nothing":               {nil, "needle", nil},
	} {
		q := parse(c.query)
		s := snippetOf(t, &q, []int{sliceSize}, longText(size, c.at))
		var marked []string
		for _, h := range s.Highlights {
			marked = append(marked, string([]rune(s.Text)[h.Start:h.End]))
		}
		if !slices.Equal(marked, c.marked) || len([]rune(s.Text)) > snippetRunes+2 {
			t.Errorf("%s: marked %q in %q", name, marked, s.Text)
		}
	}
}

const sliceSize = 64 << 10 // of slicesSQL

// TestWhatIsKeptOfALongTextIsBounded looks at what each reader of a text keeps after each piece of a long one.
func TestWhatIsKeptOfALongTextIsBounded(t *testing.T) {
	const most = 1 << 20
	for _, unit := range []string{"filler words, ", "needle sky ", "needle ", "needle-", "a", "東", "ガ", " ", "\u0301", "sky . . . . . . . . . . . "} {
		text := []byte(strings.Repeat(unit, sliceSize/len(unit)))
		q := parse(`needle "sky needle" "東ガ" -absent`)
		e, s, i := q.excerpt(t.Context()), q.scoring(t.Context()), newIndexing(t.Context(), &document{Kind: protocol.SearchMessage})
		for _, f := range []*flow{&e.flow, &s.flow, &i.flow} {
			err := f.part()
			for n := 0; n < 60 && err == nil; n++ {
				err = f.write(text)
				found := 0
				for _, w := range slices.Concat(e.wanted, s.wanted) {
					found += cap(w.found)
				}
				if kept := cap(f.t.Tokens)*100 + cap(f.broken) + cap(e.kept) + cap(e.head) + found*24 + i.size; kept > most {
					t.Fatalf("%q: about %d bytes are kept after %d pieces", unit, kept, n)
				}
			}
			if ignoreEnough(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNoLoopOverALongTextIgnoresItsContext(t *testing.T) {
	q := parse("needle -absent")
	text := []byte(longText(sliceSize, nil))
	for name, of := range map[string]func(ctx context.Context) *flow{
		"score":   func(ctx context.Context) *flow { return &q.scoring(ctx).flow },
		"excerpt": func(ctx context.Context) *flow { return &q.excerpt(ctx).flow },
		"index": func(ctx context.Context) *flow {
			return &newIndexing(ctx, &document{Kind: protocol.SearchMessage}).flow
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		f := of(ctx)
		if err := errors.Join(f.part(), f.write(text)); err != nil {
			t.Fatal(err)
		}
		before := f.t.Offset()
		cancel()
		if err := f.write(text); !errors.Is(err, context.Canceled) || f.t.Offset() != before {
			t.Errorf("%s: %v after %d further characters", name, err, f.t.Offset()-before)
		}
	}
}
