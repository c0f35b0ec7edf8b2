package search_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

const sectionBytes = 32 << 10

// addFile stores a file without a text.
func addFile(w *storetest.World, account protocol.AccountID, name string) protocol.FileID {
	w.Helper()
	id := protocol.DeriveFileID(protocol.NewUploadID())
	batch := &pgx.Batch{}
	batch.Queue(`insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		values ($1, $2, $3, 'text/plain', 'text', 1, sha256('x'), 'none', 'test', now(), now(), now())`, account, id, name)
	batch.Queue(`insert into file_texts (account_id, file_id) values ($1, $2)`, account, id)
	w.Must(w.DB.Send(w.Context(), account, batch))
	return id
}

// addText stores the text of a file, which has the blocks.
func addText(w *storetest.World, account protocol.AccountID, id protocol.FileID, text string, blocks ...protocol.TextBlock) {
	w.Helper()
	encoded, err := json.Marshal(append([]protocol.TextBlock{}, blocks...))
	w.Must(err)
	batch := &pgx.Batch{}
	queueSection(batch, account, id, 0, text, encoded)
	w.Must(w.DB.Send(w.Context(), account, batch))
}

// addLongText stores a text whose sections each have only a few words.
func addLongText(w *storetest.World, account protocol.AccountID, id protocol.FileID, sections int, words map[int]string) {
	w.Helper()
	batch := &pgx.Batch{}
	for i := range sections {
		queueSection(batch, account, id, i*sectionBytes, "ebb and flow "+words[i], []byte("[]"))
	}
	w.Must(w.DB.Send(w.Context(), account, batch))
}

func queueSection(batch *pgx.Batch, account protocol.AccountID, id protocol.FileID, start int, text string, blocks []byte) {
	batch.Queue(`insert into file_text_chunks (account_id, file_id, start_at, end_at, text, blocks) values ($1, $2, $3, $4, $5, $6)`,
		account, id, start, start+len(text), text, blocks)
	search.IndexSection(batch, account, id, start, text)
}

func TestFilesAreFoundByTheirNamesAndTheirTexts(t *testing.T) {
	w := storetest.NewWorld(t)
	tides := addFile(w, w.Account, "Q3_tides-final.pdf")
	picture := addFile(w, w.Account, "Harbour.png")
	addText(w, w.Account, tides, "The high water comes at noon.\nMarmalade is on page two.", protocol.TextBlock{Kind: protocol.BlockPage, Page: 1, Length: 30},
		protocol.TextBlock{Kind: protocol.BlockPage, Page: 2, Offset: 30, Length: 26})
	plain := addFile(w, w.Account, "notes.txt")
	addText(w, w.Account, plain, "Crème brûlée for 潮汐 readers.")
	stranger := w.OtherAccount()
	addText(w, stranger, addFile(w, stranger, "marmalade.txt"), "marmalade of another account")
	say(w, nil, "Where is the marmalade?")
	bothWays(w, func(w *storetest.World) {
		want(w, "tides", "f: Q3_tides-final.pdf")
		want(w, "tides marmalade", "f: The high water comes at noon. Marmalade is on page two.")
		want(w, "harb", "f: Harbour.png")
		want(w, "creme", "f: Crème brûlée for 潮汐 readers.")
		want(w, "潮汐", "f: Crème brûlée for 潮汐 readers.")
		want(w, `"high water" -noon`)
		got := find(w, w.Account, "marmalade", 10)
		if len(got) != 3 || got[2].Kind != protocol.SearchFile || *got[2].FileID != tides || got[2].ConversationID != nil || got[2].MessageID != nil ||
			got[2].Title != "Q3_tides-final.pdf" || *got[2].Passage != (protocol.SearchPassage{Kind: protocol.BlockPage, Page: 2, Offset: 30, Length: 26, Match: 30}) {
			t.Errorf("found %+v", got)
		}
		if got := find(w, w.Account, "harbour", 10); *got[0].FileID != picture || got[0].Passage != nil {
			t.Errorf("by its name, the picture is %+v", got)
		}
		if got := find(w, w.Account, "readers", 10); *got[0].Passage != (protocol.SearchPassage{Offset: 27, Length: 8, Match: 27}) {
			t.Errorf("the passage is %+v", got[0].Passage)
		}
	})
	w.Must(w.DB.Send(t.Context(), w.Account, batchOf(`update files set filename = 'currents.pdf' where file_id = $1`, tides)))
	bothWays(w, func(w *storetest.World) {
		want(w, "tides")
		want(w, "currents marmalade", "f: The high water comes at noon. Marmalade is on page two.")
	})
	w.Must(w.DB.Send(t.Context(), w.Account, batchOf(`update files set deleted_at = now() where file_id = $1`, tides)))
	want(w, "currents")
}

func batchOf(sql string, args ...any) *pgx.Batch {
	batch := &pgx.Batch{}
	batch.Queue(sql, args...)
	return batch
}

func TestALongFileIsFoundOnceByItsBestSection(t *testing.T) {
	w := storetest.NewWorld(t)
	var ids []protocol.FileID
	for i := range 5 {
		id := addFile(w, w.Account, fmt.Sprintf("%d.txt", i))
		addLongText(w, w.Account, id, 60, map[int]string{0: "anchor", 40: "anchor buoy", 59: "anchor"})
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	bothWays(w, func(w *storetest.World) {
		for _, limit := range []int{1, 2, 100} {
			// Every section has these words: a window of matches ends within a file.
			for _, query := range []string{"anchor", "anchor buoy", "ebb flow"} {
				var found []protocol.FileID
				for _, r := range find(w, w.Account, query, limit) {
					found = append(found, *r.FileID)
					if query == "anchor buoy" && r.Passage.Offset != 40*sectionBytes+13 {
						t.Errorf("the passage starts at %d", r.Passage.Offset)
					}
				}
				if !slices.Equal(found, ids) {
					t.Errorf("%s, %d per page: found %v, want %v", query, limit, found, ids)
				}
			}
		}
	})
}

func TestFilesOfAProjectAndOfAConversation(t *testing.T) {
	w := storetest.NewWorld(t)
	project := newProject(w, w.Account)
	inside, outside, attached := addFile(w, w.Account, "inside anchor"), addFile(w, w.Account, "outside anchor"), addFile(w, w.Account, "attached anchor")
	w.Must(w.DB.Send(t.Context(), w.Account, batchOf(`insert into project_files (account_id, project_id, file_id) values ($1, $2, $3)`, w.Account, project, inside)))
	conversation := say(w, nil, "Look at this anchor").ConversationID
	w.Must(w.DB.Send(t.Context(), w.Account, batchOf(`
		with m as (update messages set attachments = array[$3::uuid] where account_id = $1 and conversation_id = $2 and role = 'user' returning account_id, message_id)
		insert into message_files (account_id, message_id, file_id) select account_id, message_id, $3 from m`, w.Account, conversation, attached)))
	for _, few := range []int{20_000, 0} {
		w.DB.Search.SetFewRows(few)
		bothWays(w, func(w *storetest.World) {
			wantInProject(w, project, "anchor", "f: inside anchor")
			got := findIn(w, w.Account, "anchor", &conversation, 10)
			if len(got) != 3 || got[1].MessageID == nil || *got[2].FileID != attached {
				t.Errorf("in the conversation: %+v", got)
			}
		})
	}
	if found, _ := findAll(w, w.Account, search.Query{Text: "outside", Kind: protocol.SearchFile, Limit: 5}); len(found) != 1 || *found[0].FileID != outside {
		t.Errorf("files only: %+v", found)
	}
}

func TestFilesFromBeforeTheIndexAreFound(t *testing.T) {
	w := storetest.NewWorld(t)
	for i := range 3 {
		addLongText(w, w.Account, addFile(w, w.Account, fmt.Sprintf("%d.txt", i)), 3, map[int]string{2: "anchor"})
	}
	admin := w.AdminConn()
	for _, sql := range []string{
		`delete from search_pending`, `delete from search_rows`,
		`insert into search_backfill values ('file', '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000') on conflict do nothing`,
	} {
		_, err := admin.Exec(t.Context(), sql)
		w.Must(err)
	}
	w.Must(w.DB.Search.Index(t.Context()))
	if got := find(w, w.Account, "anchor", 10); len(got) != 3 || got[0].Passage.Offset != 2*sectionBytes+13 {
		t.Errorf("found %+v", got)
	}
}
