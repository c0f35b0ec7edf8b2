package search_test

import (
	"strings"
	"testing"

	"turnstone/persistence/artifacts"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// addArtifact lets the model of a turn create an artifact.
func addArtifact(w *storetest.World, turn *storetest.Turn, n int, title, content string) *protocol.Artifact {
	w.Helper()
	made, err := w.DB.Artifacts.WriteByCall(w.Context(), &turnlog.ArtifactWrite{
		Scope:  turnlog.Scope{AccountID: turn.Spec.AccountID, ConversationID: turn.Spec.ConversationID},
		TurnID: turn.Spec.TurnID, ToolID: protocol.DeriveToolID(turn.Spec.TurnID, n), Kind: protocol.ArtifactDocument, Title: title, Content: &content,
	})
	w.Must(err)
	return made
}

func TestArtifactsAreFoundByTheirTitlesAndTheirCurrentTexts(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "write"))
	turn.End(nil)
	made := addArtifact(w, turn, 1, "Tide tables", "High water at noon. Marmalade is in the harbour.")
	long := addArtifact(w, turn, 2, "Long", strings.Repeat("ebb and flow ", 20_000)+"pelican"+strings.Repeat(" and flow", 5000))
	find := func(query string, conversation *protocol.ConversationID) []protocol.SearchResult {
		t.Helper()
		found, _, err := w.DB.Search.Find(t.Context(), w.Account, &search.Query{Text: query, Kind: protocol.SearchArtifact, ConversationID: conversation, Limit: 10})
		w.Must(err)
		return found
	}
	want := func(query string, a *protocol.Artifact, snippet string) {
		t.Helper()
		found := find(query, &turn.Spec.ConversationID)
		if len(found) != 1 || *found[0].ArtifactID != a.ArtifactID || *found[0].ConversationID != a.ConversationID || found[0].Title != a.Title ||
			*found[0].MessageID != *a.MessageID || !strings.Contains(found[0].Snippet.Text, snippet) {
			t.Fatalf("%q finds %+v", query, found)
		}
		if other := storetest.NewConversation(t, w.DB, w.Account, "other").ConversationID; len(find(query, &other)) != 0 {
			t.Errorf("%q is found in another conversation", query)
		}
	}
	for _, indexed := range []bool{false, true} {
		want("marmal", made, "Marmalade is in the harbour")
		want("\"tide tables\"", made, "Tide tables")
		want("pelican", long, "pelican")
		if all := find("water -pelican", nil); len(all) != 1 {
			t.Errorf("indexed %v: %+v", indexed, all)
		}
		w.Must(w.DB.Search.Index(t.Context()))
	}
	if n := w.Count(`select count(*) from search_rows where kind = 'artifact'`); n != 2 {
		t.Errorf("%d rows", n)
	}
	w.Database.Admin(t, `delete from search_rows`)
	w.Database.Admin(t, `insert into search_backfill values ('artifact', '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000')`)
	w.Must(w.DB.Search.Index(t.Context()))
	want("marmal", made, "Marmalade is in the harbour")
	_, err := w.DB.Artifacts.Put(t.Context(), w.Account, &artifacts.Change{ArtifactID: made.ArtifactID, Version: &made.Version}, "Tides", "Low water in the evening.")
	w.Must(err)
	for range 2 {
		if len(find("marmalade", nil)) != 0 || len(find("evening", nil)) != 1 {
			t.Error("an older version is found, or the current one is not")
		}
		w.Must(w.DB.Search.Index(t.Context()))
	}
	foreign, _, err := w.DB.Search.Find(t.Context(), w.OtherAccount(), &search.Query{Text: "water", Limit: 10})
	w.Must(err)
	if len(foreign) != 0 {
		t.Errorf("another account finds %+v", foreign)
	}
}

func TestArtifactsOfATemporaryConversationAreNotFound(t *testing.T) {
	w := storetest.NewWorld(t)
	start := w.Request(nil, "write")
	start.Temporary = true
	addArtifact(w, w.Start(start), 1, "Secret", "marmalade")
	for range 2 {
		found, _, err := w.DB.Search.Find(t.Context(), w.Account, &search.Query{Text: "marmalade", Limit: 10})
		w.Must(err)
		if len(found) != 0 {
			t.Errorf("found %+v", found)
		}
		w.Must(w.DB.Search.Index(t.Context()))
	}
}
