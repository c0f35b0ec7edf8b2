package turns_test

import (
	"crypto/sha256"
	"slices"
	"testing"

	"turnstone/persistence/audit"
	"turnstone/persistence/shares"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestSharesReadOnlyWhatTheyShow(t *testing.T) {
	metered(t, sharesReadOnlyWhatTheyShow)
}

func sharesReadOnlyWhatTheyShow(t *testing.T, w meteredWorld) {
	const size = 10_000
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	id := turn.Spec.ConversationID
	w.enlarge(id, size)
	w.Database.Fill(t, `
		with other as (select conversation_id from conversations where account_id = $1 and conversation_id <> $2 limit 1), made as (
			insert into shares (account_id, share_id, conversation_id, token_hash, title, message_count, page_count, expires_at)
			select $1, md5('share' || n)::uuid, case n % 2 when 0 then $2 else (select conversation_id from other) end, sha256(n::text::bytea), 'x', 1, 1,
				now() + case when n % 4 < 2 then interval '1 day' else interval '-1 day' end
			from generate_series(1, $3::int) n returning share_id)
		insert into share_pages (account_id, share_id, page, messages) select $1, share_id, 1, '[]' from made`, w.Account, id, size)
	w.Database.Fill(t, `
		with made as (
			insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
			select $1, md5('file' || n)::uuid, 'x', 'text/plain', 'text', 1, sha256('x'), 'x', 'none', now(), now(), now() from generate_series(1, $2::int) n)
		select`, w.Account, size)
	w.Database.Fill(t, `
		insert into share_files (account_id, share_id, n, file_id, filename)
		select $1, md5('share' || n)::uuid, m, md5('file' || (1 + (n * 7 + m) % $2::int))::uuid, 'x' from generate_series(1, $2::int) n, generate_series(1, 2) m`, w.Account, size)
	w.Database.Fill(t, `
		insert into artifacts (account_id, artifact_id, conversation_id, kind, title, version, created_by, bytes, sha256)
		select $1, md5('artifact' || n)::uuid, case n when 1 then $2 else (select conversation_id from conversations where account_id = $1 and conversation_id <> $2 limit 1) end,
			'code', 'x', 1, 'model', 1, sha256('x') from generate_series(1, $3::int) n`, w.Account, id, size)
	w.Database.Fill(t, `
		insert into share_artifacts (account_id, share_id, n, artifact_id, version, kind, title, content, bytes, sha256)
		select $1, md5('share' || n)::uuid, m, md5('artifact' || n)::uuid, 1, 'code', 'x', 'x', 1, sha256('x') from generate_series(1, $2::int) n, generate_series(1, 2) m`, w.Account, size)
	w.Database.Admin(t, `update messages set attachments = array[md5('file1')::uuid] where message_id = $1`, turn.Spec.UserMessageID)
	w.analyze()
	create := func() *shares.NewShare {
		id := protocol.NewShareID()
		return &shares.NewShare{ShareID: id, ConversationID: turn.Spec.ConversationID, Days: 1, TokenHash: slices.Concat(id[:], id[:])}
	}
	token := sha256.Sum256([]byte("4"))
	for _, read := range []struct {
		name string
		most int
		call func()
	}{
		{"a page of a share", 60, func() {
			if _, err := w.DB.Shares.Open(t.Context(), token[:], 1); err != nil {
				t.Error(err)
			}
		}},
		{"a file of a share", 60, func() {
			if _, err := w.DB.Shares.OpenFile(t.Context(), token[:], 1); err != nil {
				t.Error(err)
			}
		}},
		{"an artifact of a share", 60, func() {
			opened, err := w.DB.Shares.OpenArtifact(t.Context(), token[:], 1)
			w.Must(err)
			if content, err := w.DB.Shares.ArtifactContent(t.Context(), opened); err != nil || content != "x" {
				t.Errorf("%q, %v", content, err)
			}
		}},
		{"an unknown token", 20, func() {
			_, err := w.DB.Shares.Open(t.Context(), token[:31], 1)
			storetest.WantCode(t, err, protocol.CodeNotFound)
		}},
		{"a preview", 60, func() {
			if preview, _, err := w.DB.Shares.Preview(t.Context(), w.Account, id, nil, nil, 20); err != nil || preview.MessageCount != 2 || len(preview.Files) != 1 || preview.ArtifactCount != 1 {
				t.Errorf("%+v, %v", preview, err)
			}
		}},
		{"the shares of an account", 500, func() {
			if page, next, err := w.DB.Shares.List(t.Context(), w.Account, nil, 20); err != nil || len(page) != 20 || next == nil {
				t.Errorf("%d shares, %v", len(page), err)
			}
		}},
		{"the shares of a conversation", 500, func() {
			if page, next, err := w.DB.Shares.ListOfConversation(t.Context(), w.Account, id, nil, 20); err != nil || len(page) != 20 || next == nil {
				t.Errorf("%d shares, %v", len(page), err)
			}
		}},
		{"a share over the limit", 4_500, func() {
			_, err := w.DB.Shares.Create(t.Context(), w.Account, create())
			storetest.WantCode(t, err, protocol.CodeTooManyShares)
		}},
		{"revoking a share", 150, func() {
			page, _, err := w.DB.Shares.List(t.Context(), w.Account, nil, 1)
			w.Must(err)
			w.Must(w.DB.Shares.Revoke(t.Context(), w.Account, page[0].ShareID, protocol.NewSessionID(), audit.Requester{}))
		}},
	} {
		wantPages(w.World, read.name, read.most, read.call)
	}
}
