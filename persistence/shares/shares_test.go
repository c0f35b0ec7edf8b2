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
	return f.Count(`select (select count(*) from shares) + (select count(*) from share_pages)`)
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
	f.share("b")
	_, err := f.DB.Conversations.DeleteConversation(t.Context(), f.Account, &conversations.Deletion{ConversationID: f.id})
	f.Must(err)
	f.wantEnded("a")
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
	f.share("kept")
	f.share("a")
	f.share("b")
	f.Database.Admin(t, `update shares set expires_at = now() where token_hash <> sha256('kept')`)
	f.wantEnded("a")
	if page, _, err := f.DB.Shares.List(t.Context(), f.Account, nil, 20); err != nil || len(page) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	f.Must(f.DB.Shares.Expire(t.Context()))
	if n := f.rows(); n != 2 {
		t.Errorf("%d rows are left, want those of the share that has not expired", n)
	}
	f.wantOpen("kept", 4)
}

func TestTheTokenOfAShareIsUnique(t *testing.T) {
	f := newFixture(t)
	f.share("a")
	if _, err := f.DB.Shares.Create(t.Context(), f.Account, f.request("a")); err == nil {
		t.Error("two shares have the same token")
	}
}

// Without its token, nobody reads a share of another account, whatever the statement.
func TestRowLevelSecurityHidesSharesFromOtherAccounts(t *testing.T) {
	f := newFixture(t)
	f.share("a")
	stranger := f.OtherAccount()
	for _, sql := range []string{`select count(*) from shares`, `select count(*) from share_pages`} {
		for _, account := range []protocol.AccountID{stranger, pg.NoAccount} {
			if n, err := pg.Row(t.Context(), f.DB.DB, account, pgx.RowTo[int], sql); err != nil || n != 0 {
				t.Errorf("%s: %d (%v)", sql, n, err)
			}
		}
	}
	if _, err := f.DB.Engine.Exec(t.Context(), `select title from shares`); err == nil {
		t.Error("the engine reads titles of shares")
	}
}
