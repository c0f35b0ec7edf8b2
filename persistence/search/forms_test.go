package search_test

import (
	"slices"
	"testing"

	"turnstone/persistence/pgtest"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// messagesFound returns the excerpts of the messages that a query finds, in their order.
func messagesFound(w *storetest.World, query string) (texts []string) {
	w.Helper()
	for _, r := range messagesOf(find(w, w.Account, query, 100)) {
		texts = append(texts, r.Snippet.Text)
	}
	return texts
}

func TestOtherFormsOfAWordAreFoundAfterTheWordItself(t *testing.T) {
	w := storetest.NewWorld(t)
	const cat, park = "The cat will run far", "I was running in the park"
	const insured, houses = "Ich habe eine Krankenversicherung und das Haus von Herrn Mueller", "Die Häuser sind nicht groß"
	first := say(w, nil, cat, textPart(park))
	say(w, &first.ConversationID, insured, textPart(houses))
	bothWays(w, func(w *storetest.World) {
		for query, texts := range map[string][]string{
			"run":               {cat, park},
			"running":           {park, cat},
			`"run"`:             {cat}, // a phrase has the words themselves
			"parks":             {park},
			"parks was":         {park},
			"parks -running":    nil,
			"Haus":              {insured, houses},
			"Häuser":            {houses, insured},
			"Versicherung":      {insured},
			"Versicherungen":    {insured},
			"Müller":            {insured},
			"Versicherung park": nil,
		} {
			if got := messagesFound(w, query); !slices.Equal(got, texts) {
				w.Errorf("%s found %q, want %q", query, got, texts)
			}
		}
		for _, r := range messagesOf(find(w, w.Account, "Versicherungen", 10)) {
			if runes := []rune(r.Snippet.Text); len(r.Snippet.Highlights) != 1 || string(runes[r.Snippet.Highlights[0].Start:r.Snippet.Highlights[0].End]) != "Krankenversicherung" {
				w.Errorf("highlighted: %+v", r.Snippet)
			}
		}
	})
}

func TestAnOldTextWithTheWordItselfPrecedesManyNewOnesWithOtherForms(t *testing.T) {
	w := storetest.NewWorld(t)
	seed(w, w.Account, 300, "The relations of number{n} and the others")
	old := seed(w, w.Account, 1, "The relation of one")
	_, err := w.DB.Exec(t.Context(), w.Account, `update messages set created_at = '2020-01-01' where conversation_id = $1`, old)
	w.Must(err)
	bothWays(w, func(w *storetest.World) {
		for _, limit := range []int{25, 1, 100} {
			results := messagesOf(find(w, w.Account, `relation -zebra`, limit))
			if limit == 1 {
				results = results[:min(len(results), 301)]
			}
			if len(results) != 301 || results[0].Snippet.Text != "The relation of one" {
				w.Errorf("pages of %d: %d results, the first is %q", limit, len(results), results[0].Snippet.Text)
			}
		}
	})
}

func TestAMistakenLetterIsCorrectedWhenNothingIsFound(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := say(w, nil, "The relations of the planets", textPart("Über die größte Erfindung, ein Dampf\u00ADschiff"))
	say(w, nil, "Планета Марс")
	w.Must(w.DB.Search.Index(t.Context()))
	suggested := func(query *search.Query) string {
		text, err := w.DB.Search.Suggest(t.Context(), w.Account, query)
		w.Must(err)
		return text
	}
	for query, want := range map[string]string{
		"palnets":                   "planets",           // exchanged
		"plannets":                  "planets",           // too many
		"plahnets relations":        "planets relations", // not the last word
		"planes":                    "planets",           // missing: no word begins with it
		"plamets of":                "planets of",        // another
		"relatoins palnets":         "relations planets",
		"größle":                    "größte",
		"dampfshiff":                "dampfschiff", // divided where it may be
		"планеда":                   "планета",
		"plate":                     "", // two letters
		"relatoins palnets pkanets": "", // too many words
		"thr":                       "", // short
		"zebra":                     "",
		"zebra palnets":             "", // would find nothing
		`"palnets"`:                 "",
		"-palnets":                  "",
	} {
		if got := suggested(&search.Query{Text: query}); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := suggested(&search.Query{Text: "palnets", ConversationID: &conversation.ConversationID}); got != "planets" {
		t.Errorf("in its conversation: %q", got)
	}
	if got := suggested(&search.Query{Text: "palnets", Kind: protocol.SearchFile}); got != "" {
		t.Errorf("among the files: %q", got)
	}
	other := pgtest.Account(t, w.DB)
	if text, err := w.DB.Search.Suggest(t.Context(), other, &search.Query{Text: "palnets"}); err != nil || text != "" {
		t.Errorf("in another account: %q, %v", text, err)
	}
}
