package turns_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"turnstone/persistence/files"
	"turnstone/persistence/imports"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// libraryPart is how many of the files of a large library are in its project, and how many are pictures.
const libraryPart = 25

func TestALargeLibraryIsReadInPages(t *testing.T) { metered(t, aLargeLibraryIsReadInPages) }

func aLargeLibraryIsReadInPages(t *testing.T, w meteredWorld) {
	const size = 20_000
	conversation := w.Start(w.Request(nil, "hello")).Spec.ConversationID
	project := protocol.NewProjectID()
	w.Database.Admin(t, `insert into projects (account_id, project_id, name) values ($1, $2, 'x')`, w.Account, project)
	w.Database.Fill(t, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		select $1, md5('file' || n)::uuid, case when n <= $3::int then 'photo ' else 'notes ' end || n, 'x', case when n <= $3::int then 'image' else 'text' end, n, sha256('x'), 'x', 'none', now(), now(), now()
		from generate_series(1, $2::int) n`, w.Account, size, libraryPart)
	w.Database.Fill(t, `insert into file_texts (account_id, file_id, state, size, tokens, thumbnail)
		select $1, md5('file' || n)::uuid, case when n <= $3::int then 'none' else 'done' end, case when n <= $3::int then 0 else 100 end, 30, case when n <= $3::int then '\xFF'::bytea end from generate_series(1, $2::int) n`, w.Account, size, libraryPart)
	w.Database.Fill(t, `insert into file_pages (account_id, file_id, page, picture) select $1, md5('file' || n)::uuid, p, '\xFF' from generate_series(1, $2::int / 10) n, generate_series(2, 8) p`, w.Account, size)
	w.Database.Fill(t, `insert into project_files (account_id, project_id, file_id) select $1, $2, md5('file' || n)::uuid from generate_series(1, $3::int) n`, w.Account, project, libraryPart)
	w.Database.Fill(t, `insert into import_items (account_id, import_id, kind, source_id, item_id) select $1, md5('import')::uuid, k, md5('source' || n)::uuid, md5('file' || n)::uuid
		from generate_series(1, $2::int) n, unnest(array['file', 'project']) k`, w.Account, size)
	w.Database.Fill(t, `insert into imports (account_id, import_id, state, stored, created_at, active_at, finished_at)
		select $1, md5('import' || n)::uuid, 'completed', false, now() - interval '2 days', now() - interval '2 days', now() from generate_series(1, $2::int) n`, w.Account, size)
	w.Database.Fill(t, `insert into conversations (account_id, conversation_id, active_branch_id) select $1, md5('import' || n)::uuid, md5('import' || n)::uuid from generate_series(1, $2::int) n`, w.Account, size)
	w.Database.Fill(t, `insert into projects (account_id, project_id, name) select $1, md5('project' || n)::uuid, 'x' from generate_series(1, $2::int) n`, w.Account, size)
	w.Database.Fill(t, `insert into import_sources (account_id, source_hash, conversation_id) select $1, sha256(n::text::bytea), md5('import' || n)::uuid from generate_series(1, $2::int) n`, w.Account, size)
	w.analyze()
	const page = 20
	list := func(filter files.Filter, want int) func() {
		return func() {
			found, _, err := w.DB.Files.ListFiles(t.Context(), w.Account, &filter, nil, page)
			if w.Must(err); len(found) != want {
				t.Errorf("%+v: %d files", filter, len(found))
			}
		}
	}
	var some []protocol.FileID
	found, _, err := w.DB.Files.ListFiles(t.Context(), w.Account, &files.Filter{Kind: protocol.FileImage}, nil, page)
	w.Must(err)
	for _, f := range found {
		some = append(some, f.FileID)
	}
	for _, read := range []struct {
		name string
		most int
		call func()
	}{
		{"the newest files", 200, list(files.Filter{}, page)},
		{"files by their names", 200, list(files.Filter{Sort: files.ByName}, page)},
		{"the largest files", 200, list(files.Filter{Sort: files.Larger}, page)},
		{"the pictures", 200, list(files.Filter{Kind: protocol.FileImage}, page)},
		{"the files of a project", 300, list(files.Filter{ProjectID: &project}, page)},
		{"the files of a project by their names", 300, list(files.Filter{ProjectID: &project, Sort: files.ByName}, page)},
		{"the deleted files", 60, list(files.Filter{Deleted: true}, 0)},
		{"the files for a message", 300, func() {
			found, err := w.DB.Files.PickFiles(t.Context(), w.Account, conversation, "", 10)
			if w.Must(err); len(found) != 10 {
				t.Errorf("%d files", len(found))
			}
		}},
		{"the states of files", 300, func() {
			found, err := w.DB.Files.Files(t.Context(), w.Account, some)
			if w.Must(err); len(found) != page {
				t.Errorf("%d files", len(found))
			}
		}},
		{"what is known of files", 400, func() {
			heads, err := w.DB.FileTexts.FileHeads(t.Context(), w.Account, some)
			if w.Must(err); len(heads) != page {
				t.Errorf("%d files", len(heads))
			}
			for _, head := range heads {
				if head.Pictures != 8 {
					t.Errorf("%+v", head)
				}
			}
		}},
		{"the pictures of a file", 60, func() {
			pictures, err := w.DB.FileTexts.FilePictures(t.Context(), w.Account, some[0], 3)
			if w.Must(err); len(pictures) != 3 {
				t.Errorf("%d pictures", len(pictures))
			}
		}},
		{"the newest files of a project, for a question", 400, func() {
			heads, err := w.DB.FileTexts.ProjectFileHeads(t.Context(), w.Account, project, 100)
			if w.Must(err); len(heads) != libraryPart {
				t.Errorf("%d files", len(heads))
			}
		}},
		{"the import of a conversation with a file", 2000, func() {
			export := []byte(`[{"uuid":"` + protocol.NewConversationID().String() + `","project":{"uuid":"y"},"chat_messages":[{"uuid":"1","sender":"human","text":"Why?","attachments":[{"file_name":"a.txt","extracted_content":"notes"}]}]}]`)
			received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(export), int64(len(export)))
			w.Must(err)
			refused := func(context.Context, *uploadlog.Spec, func() (io.ReadCloser, error)) (*protocol.Upload, error) {
				return &protocol.Upload{State: protocol.UploadRejected}, nil
			}
			w.Must(w.DB.Imports.Continue(t.Context(), imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}, refused))
			done, err := w.DB.Imports.Import(t.Context(), w.Account, received.ImportID)
			if w.Must(err); done.Imported != 1 || done.Report.Reasons[protocol.ImportFilesRefused] != 1 {
				t.Errorf("%+v", done)
			}
		}},
	} {
		wantPages(w.World, read.name, read.most, read.call)
	}
}
