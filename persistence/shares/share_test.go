package shares_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/shares"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// fixture is a world with a conversation of two turns.
type fixture struct {
	*storetest.World
	id protocol.ConversationID
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{World: storetest.NewWorld(t)}
	first := f.Start(f.Request(nil, "one"))
	first.End(nil)
	f.id = first.Spec.ConversationID
	f.Start(f.Request(&f.id, "two")).End(nil)
	return f
}

// request returns the request for a share with the token text.
func (f *fixture) request(token string) *shares.NewShare {
	hash := sha256.Sum256([]byte(token))
	return &shares.NewShare{ShareID: protocol.NewShareID(), ConversationID: f.id, Days: 30, TokenHash: hash[:], SessionID: protocol.NewSessionID()}
}

func (f *fixture) share(token string) *protocol.Share {
	f.Helper()
	share, err := f.DB.Shares.Create(f.Context(), f.Account, f.request(token))
	f.Must(err)
	return share
}

func (f *fixture) open(token string) (*shares.Opened, error) {
	hash := sha256.Sum256([]byte(token))
	return f.DB.Shares.Open(f.Context(), hash[:], 1)
}

func (f *fixture) wantOpen(token string, messages int) {
	f.Helper()
	opened, err := f.open(token)
	f.Must(err)
	if opened.AccountID != f.Account || opened.MessageCount != messages || len(opened.Messages) != messages {
		f.Fatalf("%+v", opened)
	}
}

func (f *fixture) wantEnded(token string) {
	f.Helper()
	_, err := f.open(token)
	storetest.WantCode(f, err, protocol.CodeNotFound)
}

func (f *fixture) purge(limit int) {
	f.Helper()
	for done := false; !done; {
		var err error
		done, err = f.DB.Conversations.PurgeConversation(f.Context(), f.Account, f.id, limit)
		f.Must(err)
	}
}

func (f *fixture) rows() int {
	f.Helper()
	return f.Count(`select (select count(*) from shares) + (select count(*) from share_pages) + (select count(*) from share_files) + (select count(*) from share_artifacts)`)
}

// attach makes a new file one of the first message, and returns it.
func (f *fixture) attach() protocol.FileID {
	f.Helper()
	id := protocol.DeriveFileID(protocol.NewUploadID())
	f.Database.Admin(f, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		values ($1, $2, 'tides.txt', 'text/plain', 'text', 3, sha256('abc'), 'x', 'none', now(), now(), now())`, f.Account, id)
	f.Database.Admin(f, `update messages set attachments = attachments || $2::uuid where message_id = $1`, f.path(nil)[0], id)
	return id
}

// carry shares the conversation with files.
func (f *fixture) carry(token string, ids ...protocol.FileID) error {
	f.Helper()
	request := f.request(token)
	request.FileIDs = ids
	_, err := f.DB.Shares.Create(f.Context(), f.Account, request)
	return err
}

func (f *fixture) openFile(token string, n int) (*shares.OpenedFile, error) {
	hash := sha256.Sum256([]byte(token))
	return f.DB.Shares.OpenFile(f.Context(), hash[:], n)
}

func TestTheFilesOfAShareAreFoundByItsTokenAndTheirNumber(t *testing.T) {
	f := newFixture(t)
	first, second := f.attach(), f.attach()
	f.Must(f.carry("a", second, first))
	f.Must(f.carry("b", first))
	for n, want := range []protocol.FileID{second, first} {
		file, err := f.openFile("a", n+1)
		if err != nil || file.FileID != want || file.AccountID != f.Account || file.Filename != "tides.txt" || file.Size != 3 || len(file.SHA256) != 64 {
			t.Errorf("%d: %+v, %v", n+1, file, err)
		}
	}
	for token, n := range map[string]int{"a": 3, "b": 2, "c": 1} {
		_, err := f.openFile(token, n)
		storetest.WantCode(t, err, protocol.CodeNotFound)
	}
	f.Database.Admin(t, `update files set deleted_at = now() where file_id = $1`, second)
	_, err := f.openFile("a", 1)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	opened, err := f.open("a")
	if err != nil || len(opened.Files) != 1 || opened.Files[0].N != 2 || *opened.Messages[0].Attachments[0].N != 2 || opened.Messages[0].Attachments[1].N != nil {
		t.Errorf("%+v, %v", opened, err)
	}
	page, _, err := f.DB.Shares.ListOfConversation(t.Context(), f.Account, f.id, nil, 20)
	if err != nil || !slices.Equal(page[0].FileIDs, []protocol.FileID{first}) || !slices.Equal(page[1].FileIDs, []protocol.FileID{first}) {
		t.Errorf("%+v, %v", page, err)
	}
	storetest.WantCode(t, f.carry("d", second), protocol.CodeNotFound)
	f.Database.Admin(t, `delete from files where file_id = $1`, first) // the purge of the file
	if n := f.Count(`select count(*) from share_files`); n != 1 {
		t.Errorf("%d rows are left, want that of the other file", n)
	}
}

// A snapshot from before files could be shared has no attachments.
func TestAnOldSnapshotHasNoAttachments(t *testing.T) {
	f := newFixture(t)
	f.share("a")
	f.Database.Admin(t, `update share_pages set messages = (select json_agg(m::jsonb - 'attachments') from json_array_elements(messages) m)`)
	opened, err := f.open("a")
	f.Must(err)
	if opened.Messages[0].Attachments == nil || len(opened.Messages[0].Attachments) != 0 || opened.Files == nil {
		t.Errorf("%+v", opened)
	}
}

func TestASnapshotDoesNotFollowItsConversation(t *testing.T) {
	f := newFixture(t)
	share := f.share("a")
	if share.Title != "one" || share.MessageCount != 4 || !share.ExpiresAt.Equal(share.CreatedAt.AddDate(0, 0, 30)) {
		t.Errorf("%+v", share)
	}
	f.Start(f.Request(&f.id, "three")).End(nil)
	f.wantOpen("a", 4)
	f.share("b")
	f.wantOpen("b", 6)
	live := f.Start(f.Request(&f.id, "four"))
	f.share("c")
	f.wantOpen("c", 7) // up to the question
	request := f.request("d")
	request.MessageID = &live.Spec.AssistantMessageID
	_, err := f.DB.Shares.Create(t.Context(), f.Account, request)
	storetest.WantCode(t, err, protocol.CodeTurnInProgress)
	live.End(nil)
}

// The list has an end.
func TestThePreviewSaysHowManyFilesThereAre(t *testing.T) {
	f := newFixture(t)
	const files = 2*protocol.MaxShareableFiles + 1
	f.Database.Admin(t, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		select $1, gen_random_uuid(), 'a.txt', 'text/plain', 'text', 1, sha256('x'), 'x' || n, 'x', now(), now(), now() from generate_series(1, $2) n`, f.Account, files)
	f.Database.Admin(t, `update messages set attachments = array(select file_id from files)
		where (branch_id, depth) in (select branch_id, max(depth) from messages group by branch_id)`)
	preview, _, err := f.DB.Shares.Preview(t.Context(), f.Account, f.id, nil, nil, 20)
	f.Must(err)
	if len(preview.Files) != protocol.MaxShareableFiles || preview.FileCount != files {
		t.Errorf("%d files are listed, of %d", len(preview.Files), preview.FileCount)
	}
}

func TestAShareBelongsToItsAccount(t *testing.T) {
	f := newFixture(t)
	share := f.share("a")
	stranger := f.OtherAccount()
	_, err := f.DB.Shares.Create(t.Context(), stranger, f.request("b"))
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, _, err = f.DB.Shares.Preview(t.Context(), stranger, f.id, nil, nil, 20)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, _, err = f.DB.Shares.ListOfConversation(t.Context(), stranger, f.id, nil, 20)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	if page, _, err := f.DB.Shares.List(t.Context(), stranger, nil, 20); err != nil || len(page) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	storetest.WantCode(t, f.DB.Shares.Revoke(t.Context(), stranger, share.ShareID, protocol.NewSessionID(), audit.Requester{}), protocol.CodeNotFound)
	f.Database.Admin(t, `update conversations set deleted_at = now() where conversation_id = $1`, f.id)
	storetest.WantCode(t, f.DB.Shares.Revoke(t.Context(), f.Account, share.ShareID, protocol.NewSessionID(), audit.Requester{}), protocol.CodeNotFound)
	f.Database.Admin(t, `update conversations set deleted_at = null where conversation_id = $1`, f.id)
	f.Must(f.DB.Shares.RecordOpens(t.Context(), shares.Ref{AccountID: stranger, ShareID: share.ShareID}, 9, time.Now()))
	f.wantOpen("a", 4)
	page, _, err := f.DB.Shares.List(t.Context(), f.Account, nil, 20)
	if err != nil || len(page) != 1 || page[0].OpenCount != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	other := storetest.NewConversation(t, f.DB, f.Account, "Other").ConversationID
	head := page[0]
	request := f.request("c")
	request.ConversationID, request.MessageID = other, f.head()
	_, err = f.DB.Shares.Create(t.Context(), f.Account, request)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	request.MessageID = nil
	_, err = f.DB.Shares.Create(t.Context(), f.Account, request)
	storetest.WantCode(t, err, protocol.CodeConflict)
	if head.ConversationID != f.id {
		t.Errorf("%+v", head)
	}
}

func (f *fixture) head() *protocol.MessageID {
	f.Helper()
	c, err := f.DB.Conversations.Conversation(f.Context(), f.Account, f.id)
	f.Must(err)
	return c.HeadMessageID
}

func TestASnapshotShowsThePathOfItsMessage(t *testing.T) {
	f := newFixture(t)
	trunk := f.path(nil)
	for round := range 6 {
		at := trunk[2*(round%2)]
		edit := f.Request(&f.id, fmt.Sprint("edit ", round))
		edit.Branch = &protocol.BranchRequest{MessageID: at, Mode: protocol.BranchEdit}
		f.Start(edit).End(nil)
		f.Start(f.Request(&f.id, "more")).End(nil)
		trunk = f.path(nil)
	}
	for i := range trunk {
		request := f.request(fmt.Sprint("path ", i))
		request.MessageID = &trunk[i]
		share, err := f.DB.Shares.Create(t.Context(), f.Account, request)
		f.Must(err)
		opened, err := f.open(fmt.Sprint("path ", i))
		f.Must(err)
		want := f.texts(trunk[:i+1])
		var got []string
		for _, message := range opened.Messages {
			got = append(got, message.Role+" "+message.Parts[0].Text)
		}
		if share.MessageCount != i+1 || !slices.Equal(got, want) {
			t.Errorf("up to message %d the share shows %v, want %v", i, got, want)
		}
	}
}

// path returns the identifiers of the messages of a branch; nil: the active one.
func (f *fixture) path(branch *protocol.BranchID) (ids []protocol.MessageID) {
	f.Helper()
	page, err := f.DB.Conversations.Messages(f.Context(), f.Account, &conversations.MessageQuery{ConversationID: f.id, BranchID: branch, Limit: 100})
	f.Must(err)
	for i := range page.Messages {
		ids = append(ids, page.Messages[i].MessageID)
	}
	return ids
}

func (f *fixture) texts(ids []protocol.MessageID) (texts []string) {
	f.Helper()
	for _, id := range ids {
		message, err := f.DB.Conversations.GetMessage(f.Context(), f.Account, id)
		f.Must(err)
		texts = append(texts, message.Role+" "+message.Parts[0].Text)
	}
	return texts
}

func TestSharesEndWithTheirConversation(t *testing.T) {
	f := newFixture(t)
	f.share("a")
	f.Must(f.carry("b", f.attach(), f.attach()))
	_, err := f.shareArtifacts("d", f.write(f.id, "Tides", "one").ArtifactID, f.write(f.id, "Winds", "two").ArtifactID)
	f.Must(err)
	_, err = f.DB.Conversations.DeleteConversation(t.Context(), f.Account, &conversations.Deletion{ConversationID: f.id})
	f.Must(err)
	f.wantEnded("a")
	f.wantNoArtifact("d", 1)
	_, err = f.DB.Shares.Create(t.Context(), f.Account, f.request("c"))
	storetest.WantCode(t, err, protocol.CodeNotFound)
	if f.rows() == 0 {
		t.Fatal("the purge has nothing to do")
	}
	f.purge(1)
	if n := f.rows(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// A deletion and its purge may run between the snapshot and the share.
func TestNoShareOutlivesThePurgeOfItsConversation(t *testing.T) {
	f := newFixture(t)
	blocked, release := make(chan struct{}), make(chan struct{})
	go func() {
		err := f.DB.InTx(context.WithoutCancel(t.Context()), f.Account, func(ctx context.Context, tx *pg.Tx) error {
			_, err := conversations.LockConversation(ctx, tx, f.Account, f.id)
			close(blocked)
			<-release
			if err == nil {
				_, err = tx.Exec(ctx, `update conversations set deleted_at = now() where account_id = $1`, f.Account)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-blocked
	created := make(chan error, 1)
	go func() {
		_, err := f.DB.Shares.Create(t.Context(), f.Account, f.request("a"))
		created <- err
	}()
	storetest.AwaitLocked(t, f.Database, "\tselect active_branch_id")
	close(release)
	storetest.WantCode(t, <-created, protocol.CodeNotFound)
	f.purge(1000)
	if n := f.rows(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestExpiredSharesAreErased(t *testing.T) {
	f := newFixture(t)
	f.Must(f.carry("kept", f.attach()))
	f.Must(f.carry("a", f.attach(), f.attach()))
	artifact := f.write(f.id, "Tides", "one").ArtifactID
	for _, token := range []string{"b", "c"} {
		_, err := f.shareArtifacts(token, artifact)
		f.Must(err)
	}
	f.Database.Admin(t, `update shares set expires_at = now() where token_hash not in (sha256('kept'), sha256('c'))`)
	f.wantEnded("a")
	f.wantNoArtifact("b", 1)
	if page, _, err := f.DB.Shares.List(t.Context(), f.Account, nil, 20); err != nil || len(page) != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	f.Must(f.DB.Shares.Expire(t.Context()))
	if n := f.rows(); n != 6 {
		t.Errorf("%d rows are left, want those of the shares that have not expired", n)
	}
	f.wantOpen("kept", 4)
	f.wantArtifact("c", 1, "Tides", "one")
}

func TestTheTokenOfAShareIsUnique(t *testing.T) {
	f := newFixture(t)
	f.share("a")
	if _, err := f.DB.Shares.Create(t.Context(), f.Account, f.request("a")); err == nil {
		t.Error("two shares have the same token")
	}
}

// Without its token, no statement reads a share of another account.
func TestRowLevelSecurityHidesSharesFromOtherAccounts(t *testing.T) {
	f := newFixture(t)
	f.Must(f.carry("a", f.attach()))
	_, err := f.shareArtifacts("b", f.write(f.id, "Tides", "one").ArtifactID)
	f.Must(err)
	stranger := f.OtherAccount()
	for _, sql := range []string{`select count(*) from shares`, `select count(*) from share_pages`, `select count(*) from share_files`, `select count(*) from share_artifacts`} {
		for _, account := range []protocol.AccountID{stranger, pg.NoAccount} {
			if n, err := pg.Row(t.Context(), f.DB.DB, account, pgx.RowTo[int], sql); err != nil || n != 0 {
				t.Errorf("%s: %d (%v)", sql, n, err)
			}
		}
	}
	if _, err := f.DB.Engine.Exec(t.Context(), `select title from shares`); err == nil {
		t.Error("the engine reads titles of shares")
	}
	if _, err := f.DB.Engine.Exec(t.Context(), `select filename from share_files`); err == nil {
		t.Error("the engine reads names of shared files")
	}
	if _, err := f.DB.Engine.Exec(t.Context(), `select content from share_artifacts`); err == nil {
		t.Error("the engine reads shared artifacts")
	}
}
