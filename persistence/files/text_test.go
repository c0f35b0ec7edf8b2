package files_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/actors/modelinput/modelinputtest"
	"turnstone/actors/passages/passagestest"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/protocol/turnlog"
)

// chunkBytes is the size of the rows of a text.
const chunkBytes = 32 << 10

// shelf is an account with a project that has files.
type shelf struct {
	*storetest.World
	project protocol.ProjectID
	files   int
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{World: storetest.NewWorld(t), project: protocol.NewProjectID()}
	s.Database.Admin(t, `insert into projects (account_id, project_id, name) values ($1, $2, 'x')`, s.Account, s.project)
	return s
}

func (s *shelf) addFile(name, kind string) protocol.FileID {
	s.Helper()
	s.files++
	id := protocol.DeriveFileID(protocol.NewUploadID())
	s.Database.Admin(s.T, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		values ($1, $2, $3, 'text/plain', $4, 1, sha256('x'), 'none', 'test', now(), now() + make_interval(secs => $5), now())`, s.Account, id, name, kind, s.files)
	s.Database.Admin(s.T, `insert into project_files (account_id, project_id, file_id, added_at) values ($1, $2, $3, now() + make_interval(secs => $4))`, s.Account, s.project, id, s.files)
	return id
}

// add adds a file with a text.
func (s *shelf) add(name, text string, blocks ...protocol.TextBlock) protocol.FileID {
	s.Helper()
	id := s.addFile(name, "text")
	batch := &pgx.Batch{}
	batch.Queue(`insert into file_texts (account_id, file_id, state, size, pages, tokens) values ($1, $2, 'done', $3, nullif($4, 0), 1)`, s.Account, id, len(text), len(blocks))
	for start := 0; start < len(text); {
		end, within := start+len(clip.Bytes(text[start:], chunkBytes)), []protocol.TextBlock{}
		for _, b := range blocks {
			if b.Offset < end && b.Offset+b.Length > start {
				within = append(within, b)
			}
		}
		encoded, err := json.Marshal(within)
		s.Must(err)
		batch.Queue(`insert into file_text_chunks (account_id, file_id, start_at, end_at, text, blocks) values ($1, $2, $3, $4, $5, $6)`,
			s.Account, id, start, end, text[start:end], encoded)
		search.IndexSection(batch, s.Account, id, start, text[start:end])
		start = end
	}
	s.Must(s.DB.Send(s.Context(), s.Account, batch))
	return id
}

func (s *shelf) addPicture(name string, content []byte) protocol.FileID {
	s.Helper()
	id := s.addFile(name, "image")
	s.Database.Admin(s.T, `insert into file_texts (account_id, file_id, state, thumbnail, picture) values ($1, $2, 'none', $3, $3)`, s.Account, id, content)
	return id
}

func TestTheStoreShowsFilesToModels(t *testing.T) {
	modelinputtest.Run(t, func(t *testing.T) modelinputtest.Files {
		s := newShelf(t)
		return modelinputtest.Files{Store: s.DB.FileTexts, Account: s.Account, Project: s.project, Add: s.add, AddPicture: s.addPicture}
	})
}

func TestTheStoreIsALibraryForTools(t *testing.T) {
	modelinputtest.RunLibrary(t, func(t *testing.T) modelinputtest.Shelf {
		s := newShelf(t)
		text, blocks := passagestest.Pages(40, func(page int) string {
			return fmt.Sprintf("Page %d. %s", page, strings.Repeat("Ebb and flow. ", 70))
		})
		scope := turnlog.Scope{AccountID: s.Account, ConversationID: protocol.NewConversationID(), ProjectID: &s.project}
		return modelinputtest.Shelf{Library: s.DB.FileTexts, Scope: scope, File: s.add("pilot.pdf", text, blocks...), Text: text, Blocks: blocks, Word: "17"}
	})
}
