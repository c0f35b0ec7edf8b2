package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// awaitRest waits until no turn is live and no queue has an item left to start.
func (r *run) awaitRest() {
	r.t.Helper()
	sitetest.Eventually(r.t, "all turns have ended and all queues are empty", func() bool {
		left := query(r.site, pgx.RowTo[int64], `
			select (select count(*) from turns where not terminal) + (select count(*) from follow_ups where state = 'queued')`)
		return left[0] == 0
	})
}

// checkTurns compares the durable logs of all turns with what their clients saw and received.
func (r *run) checkTurns() {
	stale := query(r.site, pgx.RowTo[uuid.UUID], `
		select distinct turn_id from (
			select turn_id, epoch, max(epoch) over (partition by turn_id order by first_sequence) as newest from turn_events) e
		where epoch < newest`)
	if len(stale) > 0 {
		r.t.Errorf("events of an earlier owner follow those of a later one in %v", stale)
	}
	for _, known := range r.all {
		turn := known.user.via[0].CheckTurn(r.t, known.turn, known.told...)
		sitetest.Report(r.t, known.turn, turn.CheckApprovals(known.decided))
		if known.counted != len(turn.Events) {
			r.t.Errorf("%s has %d events, and its reader saw %d", known.turn, len(turn.Events), known.counted)
		}
	}
}

// named is a stored resource and the text by which its client knows it.
type named struct{ Name, ID string }

// storedTurns returns the turns by the token in the text that they answer.
func (r *run) storedTurns() map[string][]string {
	stored := map[string][]string{}
	for _, one := range query(r.site, pgx.RowToStructByPos[asked], `
		select m.parts->0->>'text', t.turn_id from turns t join messages m on m.account_id = t.account_id and m.message_id = t.user_message_id`) {
		token := tokenOf(one.Text)
		stored[token] = append(stored[token], one.Turn.String())
	}
	return stored
}

// checkDoubled ends the test if a start has started two turns. No client knows one of them, which may wait for an approval.
func (r *run) checkDoubled() {
	r.t.Helper()
	for token, turns := range r.storedTurns() {
		if len(turns) > 1 {
			r.t.Fatalf("turns: %v", verify.Finding{Kind: verify.Doubled, Text: fmt.Sprintf("%s exists as %v", token, turns)})
		}
	}
}

// checkStored compares the database with the ledgers of the clients: everything that was acknowledged is stored, once, and
// nothing else is.
func (r *run) checkStored() {
	r.checkWrites("turns", r.starts, r.storedTurns())
	keys := query(r.site, pgx.RowTo[int64], `
		select count(*) from idempotency i
		where path = '/chat' and (status is null
			or resource_id is not null and not exists (select from turns t where t.account_id = i.account_id and t.turn_id = i.resource_id))`)
	if keys[0] != 0 {
		r.t.Errorf("%d idempotency keys of POST /chat have no response, or name a turn that does not exist", keys[0])
	}
	for _, w := range r.writers {
		w.check(r)
	}
}

// check compares what is stored of an account with what its writer knows.
func (w *writer) check(r *run) {
	var account protocol.AccountID
	for _, id := range query(r.site, pgx.RowTo[protocol.AccountID], `select account_id from accounts where email = $1`, w.user.via[0].Email) {
		account = id
	}
	titles := map[string][]string{}
	for _, one := range query(r.site, pgx.RowToStructByPos[titled], `select title, conversation_id from conversations where account_id = $1`, account) {
		titles[one.Title] = append(titles[one.Title], one.ID.String())
	}
	r.checkWrites("conversations", w.created, titles)
	files := map[string][]string{}
	for _, one := range query(r.site, pgx.RowToStructByPos[named], `select filename, encode(sha256, 'hex') from files where account_id = $1`, account) {
		files[one.Name] = append(files[one.Name], one.ID)
	}
	var uploads []verify.Write
	for name, sum := range w.files {
		uploads = append(uploads, verify.Write{What: name, ID: sum, Outcome: verify.Acknowledged})
	}
	r.checkWrites("files", uploads, files)
	sessions := map[string][]string{}
	for _, one := range query(r.site, pgx.RowToStructByPos[named], `
		select u.filename, encode(f.sha256, 'hex') from uploads u join files f using (account_id, file_id) where account_id = $1 and u.state = 'ready'`, account) {
		sessions[one.Name] = append(sessions[one.Name], one.ID)
	}
	r.checkWrites("uploads", uploads, sessions)
	page := w.user.via[0].Page(r.t, w.home)
	if page.Conversation.Title != w.title || page.Draft.Content != w.draft {
		r.t.Errorf("%s has the title %q and the draft %q; acknowledged were %q and %q", w.home, page.Conversation.Title, page.Draft.Content, w.title, w.draft)
	}
}

// checkWrites checks that exactly what was acknowledged is stored. Every request was repeated until it had an outcome.
func (r *run) checkWrites(what string, writes []verify.Write, stored map[string][]string) {
	sitetest.Report(r.t, what, verify.CheckWrites(writes, stored))
}

type (
	asked struct {
		Text string
		Turn protocol.TurnID
	}
	titled struct {
		Title string
		ID    protocol.ConversationID
	}
)

// tokenOf returns the token in the text of a message: the word after the canary.
func tokenOf(text string) string {
	words := strings.Fields(text)
	if at := slices.Index(words, sitetest.Canary); at >= 0 && at+1 < len(words) {
		return words[at+1]
	}
	return fmt.Sprintf("no token in %q", text)
}
