package http

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/http/chat"
	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
)

// endingTurns ends a turn in the database when the turn is cancelled.
type endingTurns struct {
	chat.Turns
	db        *persistence.Stores
	cancelled []protocol.TurnID
	by        protocol.CancelledBy // of the last one
	scope     protocol.CancelScope
}

func (e *endingTurns) CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error {
	e.cancelled, e.by, e.scope = append(e.cancelled, turn), by, scope
	batch := &pgx.Batch{}
	batch.Queue(`update turns set state = 'cancelled', accepting = false where turn_id = $1`, turn)
	batch.Queue(`update messages set status = 'cancelled' where turn_id = $1`, turn)
	batch.Queue(`update conversations set live_turn_id = null where live_turn_id = $1`, turn)
	return e.db.Send(ctx, account, batch)
}

// conversationWorld returns a world in which a cancelled turn ends at once.
func conversationWorld(t *testing.T) (*world, *endingTurns) {
	t.Helper()
	turns := &endingTurns{}
	w := newWorld(t, func(config *testConfig) { config.Turns, turns.db = turns, config.DB })
	return w, turns
}

// user is a client that is signed in and whose responses are decoded.
type user struct{ *client }

// signUp registers a new account.
func signUp(t *testing.T, w *world) *user {
	t.Helper()
	return &user{w.client().register(protocol.NewAccountID().String() + "@example.com")}
}

// decodedReply is a response with its body decoded.
type decodedReply struct {
	*reply
	text   string
	object any
}

// at returns the field of the body at a path such as data.0.title, or nil if there is none.
func (r decodedReply) at(path string) any {
	value := r.object
	for name := range strings.SplitSeq(path, ".") {
		if list, isList := value.([]any); isList {
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(list) {
				return nil
			}
			value = list[i]
			continue
		}
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// do sends a request, expects a status and decodes the body. headers alternates names and values.
func (u *user) do(status int, method, path string, content any, headers ...string) decodedReply {
	u.t.Helper()
	got := decodedReply{reply: u.expect(status, method, path, content, headers...)}
	got.text = string(got.body)
	_ = json.Unmarshal(got.body, &got.object)
	return got
}

// conversation creates a conversation and returns its identifier.
func (u *user) conversation(title string) string {
	u.t.Helper()
	return u.do(201, "POST", "/conversations", map[string]any{"title": title}).at("conversation_id").(string)
}

const insertMessageSQL = `
	with place as (
		select b.branch_id, b.head_message_id, b.head_depth, c.conversation_id
		from conversations c join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
		where c.conversation_id = @conversation
	), message as (
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, turn_id, sibling_index)
		select @account, @message, conversation_id, branch_id, head_depth + 1, head_message_id, @role, @status, @parts, @turn,
			(select count(*) from messages m where m.conversation_id = @conversation and m.parent_message_id is not distinct from head_message_id)
		from place
	), head as (
		update branches b set head_message_id = @message, head_depth = b.head_depth + 1
		from place p where b.branch_id = p.branch_id
	)
	update conversations set message_count = message_count + 1, last_activity_at = now() where conversation_id = @conversation`

// storeMessages stores messages in the active branch, alternately of the user and the assistant, and returns their
// identifiers.
func (u *user) storeMessages(conversation string, texts ...string) []string {
	u.t.Helper()
	id := u.parse(conversation)
	batch := &pgx.Batch{}
	var ids []string
	for i, text := range texts {
		message := protocol.NewMessageID()
		ids = append(ids, message.String())
		batch.Queue(insertMessageSQL, pgx.NamedArgs{
			"account": u.account.AccountID, "conversation": id, "message": message, "role": []string{"user", "assistant"}[i%2], "status": "complete",
			"parts": []protocol.Part{{Type: protocol.PartText, PartID: protocol.NewPartID(), Text: text}}, "turn": nil,
		})
	}
	if err := u.DB.Send(u.t.Context(), u.account.AccountID, batch); err != nil {
		u.t.Fatal(err)
	}
	return ids
}

func (u *user) parse(conversation string) protocol.ConversationID {
	u.t.Helper()
	return idtest.Parse[protocol.ConversationID](u.t, conversation)
}

// liveTurn stores a running turn of a conversation, with a log of the payloads, and returns its identifier.
func (u *user) liveTurn(conversation string, payloads ...protocol.Payload) string {
	u.t.Helper()
	turn, message := protocol.NewTurnID(), protocol.NewMessageID()
	args := pgx.NamedArgs{
		"account": u.account.AccountID, "conversation": u.parse(conversation), "message": message, "role": "assistant", "status": "streaming",
		"parts": []protocol.Part{}, "turn": turn, "next": len(payloads) + 1, "owner": protocol.NewNodeID(),
	}
	batch := &pgx.Batch{}
	batch.Queue(insertMessageSQL, args)
	batch.Queue(`insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, owner, next_sequence)
		select @account, @turn, conversation_id, active_branch_id, @message, @message, '{}', 'running', true, @owner, @next
		from conversations where conversation_id = @conversation`, args)
	batch.Queue(`update conversations set live_turn_id = @turn where conversation_id = @conversation`, args)
	var frames []byte
	for i, payload := range payloads {
		var err error
		if frames, err = protocol.AppendEvent(frames, turn, int64(i+1), time.Now(), payload); err != nil {
			u.t.Fatal(err)
		}
		frames = append(frames, '\n')
	}
	if len(payloads) > 0 {
		batch.Queue(`insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames) values ($1, $2, 1, $3, 1, $4)`,
			u.account.AccountID, turn, len(payloads), frames)
	}
	if err := u.DB.Send(u.t.Context(), u.account.AccountID, batch); err != nil {
		u.t.Fatal(err)
	}
	return turn.String()
}

func wantField(t *testing.T, got decodedReply, path string, want any) {
	t.Helper()
	if value := got.at(path); value != want {
		t.Errorf("%s is %v, want %v in %s", path, value, want, got.text)
	}
}

func TestAConversationIsMadeListedReadAndNamed(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	made := u.do(201, "POST", "/conversations", map[string]any{"title": "  First  ", "profile": "coding"})
	id := made.at("conversation_id").(string)
	if made.header.Get("Location") != "/conversations/"+id || made.header.Get("ETag") != `"v1"` {
		t.Errorf("headers %v", made.header)
	}
	wantField(t, made, "title", "First")
	wantField(t, made, "title_source", "user")
	wantField(t, made, "profile", "coding")
	u.do(404, "POST", "/conversations", map[string]any{"project_id": "proj_01k0000000e1g80000000000zz"})
	u.do(422, "POST", "/conversations", map[string]any{"profile": "genius"})
	u.do(422, "POST", "/conversations", map[string]any{"title": "   "})

	page := u.do(200, "GET", "/conversations/"+id, nil)
	wantField(t, page, "draft.version", 0.0)
	wantField(t, page, "live_turn", nil)
	wantField(t, page, "queue_version", 1.0)
	for _, list := range []string{"follow_ups", "pending_approvals", "draft.attachments"} {
		if value, isList := page.at(list).([]any); !isList || len(value) != 0 {
			t.Errorf("%s is %v", list, page.at(list))
		}
	}

	title := "/conversations/" + id + "/title"
	named := u.do(200, "PUT", title, map[string]any{"title": " " + strings.Repeat("ü", 200) + " "})
	if named.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %s", named.header.Get("ETag"))
	}
	u.do(422, "PUT", title, map[string]any{"title": strings.Repeat("ü", 201)})
	u.do(422, "PUT", title, map[string]any{"title": "\t\n"})
	stale := u.do(409, "PUT", title, map[string]any{"title": "x"}, "If-Match", `"v1"`)
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.version", 2.0)
	u.do(422, "PUT", title, map[string]any{"title": "x", "version": 1}, "If-Match", `"v2"`)
	u.do(200, "PUT", title, map[string]any{"title": "x", "version": 2}, "If-Match", `"v2"`)

	for i := range 4 {
		u.conversation(fmt.Sprint("more ", i))
	}
	first := u.do(200, "GET", "/conversations?limit=3", nil)
	wantField(t, first, "has_more", true)
	wantField(t, first, "data.0.title", "more 3")
	cursor := first.at("next_cursor").(string)
	rest := u.do(200, "GET", "/conversations?limit=3&cursor="+cursor, nil)
	wantField(t, rest, "has_more", false)
	wantField(t, rest, "next_cursor", nil)
	wantField(t, rest, "data.1.conversation_id", id)
	for _, query := range []string{
		"cursor=garbage", "pinned=true&cursor=" + cursor, "limit=0", "limit=101", "limit=x", "archived=maybe", "project_id=proj_1", "project_id=conv_x",
	} {
		u.do(422, "GET", "/conversations?"+query, nil)
	}
	signUp(t, s).do(422, "GET", "/conversations?limit=3&cursor="+cursor, nil)
	archived := u.do(200, "GET", "/conversations?archived=true", nil)
	if data, isList := archived.at("data").([]any); !isList || len(data) != 0 {
		t.Errorf("archived conversations: %s", archived.text)
	}
}

func TestARepeatedCreationMakesNothingNew(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Once")
	ids := u.storeMessages(id, "one")
	for path, content := range map[string]route.Object{
		"/conversations":                     {"title": "Twice"},
		"/conversations/" + id + "/branches": {"message_id": ids[0], "mode": "fork"},
		"/conversations/" + id + "/usage":    {"kind": "k", "quantity": 1, "unit": "u"},
	} {
		first := u.do(201, "POST", path, content, "Idempotency-Key", "key-1")
		second := u.do(201, "POST", path, content, "Idempotency-Key", "key-1")
		if first.text != second.text || second.header.Get("Idempotent-Replayed") != "true" || second.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%s: %s and %s, %v", path, first.text, second.text, second.header)
		}
	}
	if list, _ := u.do(200, "GET", "/conversations", nil).at("data").([]any); len(list) != 3 {
		t.Errorf("there are %d conversations", len(list))
	}
}

func TestPutFollowsTheVersionRule(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	path := "/conversations/" + protocol.NewConversationID().String()
	made := u.do(201, "PUT", path, map[string]any{"title": "Mine", "metadata": map[string]string{"a": "b"}})
	if made.header.Get("Location") != path || made.header.Get("ETag") != `"v1"` {
		t.Errorf("headers %v", made.header)
	}
	u.do(200, "PUT", path, map[string]any{"title": "Mine", "metadata": map[string]string{"a": "b"}})
	refused := u.do(409, "PUT", path, map[string]any{"title": "Other", "profile": nil})
	wantField(t, refused, "code", "version_required")
	wantField(t, refused, "current.title", "Mine")
	changed := u.do(200, "PUT", path, map[string]any{"title": "Other"}, "If-Match", `"v1"`)
	wantField(t, changed, "version", 2.0)
	wantField(t, changed, "metadata.a", nil)
	wantField(t, u.do(409, "PUT", path, map[string]any{"title": "Third", "version": 1}), "code", "stale_version")
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint(i)] = "x"
	}
	u.do(422, "PUT", path, map[string]any{"metadata": many})
	u.do(422, "PUT", path, map[string]any{"metadata": map[string]string{"k": strings.Repeat("x", 513)}})
	u.do(422, "PUT", path, map[string]any{"title": "x"}, "If-Match", "v2")
	signUp(t, s).do(201, "PUT", path, map[string]any{"title": "Theirs"})
	u.do(404, "PUT", "/conversations/conv_x", map[string]any{})
	u.do(204, "DELETE", path, nil)
	u.do(404, "PUT", path, map[string]any{"title": "Mine"})
	u.do(404, "DELETE", path, nil)
}

func TestPutDecidesWhetherAnUnusedConversationIsTemporary(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	path := "/conversations/" + protocol.NewConversationID().String()
	temporary := map[string]any{"temporary": true}
	wantField(t, u.do(201, "PUT", path, temporary), "temporary", true)
	wantField(t, u.do(200, "PUT", path, temporary), "version", 1.0)
	wantField(t, u.do(200, "PUT", path, map[string]any{"profile": "coding"}, "If-Match", `"v1"`), "temporary", true)
	wantField(t, u.do(409, "PUT", path, map[string]any{"profile": "coding", "temporary": false}), "code", "version_required")
	wantField(t, u.do(409, "PUT", path, map[string]any{"profile": "coding", "temporary": false, "version": 1}), "code", "stale_version")
	changed := u.do(200, "PUT", path, map[string]any{"profile": "coding", "temporary": false, "version": 2})
	wantField(t, changed, "temporary", false)
	wantField(t, changed, "profile", "coding")
	wantField(t, u.do(200, "PUT", path, map[string]any{"profile": "coding", "temporary": true, "version": 3}), "version", 4.0)
	if list, _ := u.do(200, "GET", "/conversations", nil).at("data").([]any); len(list) != 0 {
		t.Errorf("the temporary conversation is listed: %v", list)
	}
	listed := "/conversations/" + protocol.NewConversationID().String()
	wantField(t, u.do(201, "PUT", listed, map[string]any{}), "temporary", false)
	titled := u.do(409, "PUT", listed, map[string]any{"temporary": true, "title": "Tides", "version": 1})
	wantField(t, titled, "code", "conflict")
	wantField(t, titled, "current.temporary", false)
	u.do(200, "PUT", listed+"/title", map[string]any{"title": "Tides"})
	wantField(t, u.do(409, "PUT", listed, map[string]any{"temporary": true, "version": 2}), "code", "conflict")
	used := protocol.NewConversationID().String()
	u.do(201, "PUT", "/conversations/"+used, temporary)
	u.storeMessages(used, "question")
	wantField(t, u.do(409, "PUT", "/conversations/"+used, map[string]any{"temporary": false, "version": 1}), "code", "conflict")
}

func TestDeletingLiveWorkNeedsItsConfirmation(t *testing.T) {
	t.Parallel()
	w, turns := conversationWorld(t)
	u := signUp(t, w)
	id := u.conversation("Live")
	path := "/conversations/" + id
	u.storeMessages(id, "question")
	turn := u.liveTurn(id)
	u.do(409, "DELETE", path, nil, "If-Match", `"v7"`)
	first := u.do(409, "DELETE", path, nil)
	wantField(t, first, "code", "confirmation_required")
	wantField(t, first, "current.confirmation.will_delete.messages", 2.0)
	wantField(t, first, "current.confirmation.will_delete.live_turns", 1.0)
	wantField(t, u.do(409, "DELETE", path, nil, "X-Confirm", "no"), "code", "confirmation_required")
	token := first.at("current.confirmation.token").(string)
	other := u.conversation("Other")
	u.storeMessages(other, "question")
	u.liveTurn(other)
	u.do(409, "DELETE", "/conversations/"+other, nil, "X-Confirm", token)
	if len(turns.cancelled) != 0 {
		t.Fatalf("cancelled %v without a confirmation", turns.cancelled)
	}
	u.do(204, "DELETE", path, nil, "X-Confirm", token)
	if len(turns.cancelled) != 1 || turns.cancelled[0].String() != turn {
		t.Errorf("cancelled %v", turns.cancelled)
	}
	u.do(404, "GET", path, nil)
	if events := w.events(u.account.AccountID); !contains(events, conversations.EventConversationDeleted) {
		t.Errorf("the audit contains %v", events)
	}
}

func TestAnotherAccountsConversationIsAMissingOne(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	owner, stranger := signUp(t, s), signUp(t, s)
	theirs := owner.conversation("secret")
	ids := owner.storeMessages(theirs, "one", "two")
	branch := owner.do(200, "GET", "/conversations/"+theirs, nil).at("active_branch_id")
	missing := protocol.NewConversationID().String()
	for _, ask := range []struct {
		method, path string
		content      any
	}{
		{"GET", "", nil},
		{"DELETE", "", nil},
		{"GET", "/messages", nil},
		{"GET", "/messages?around=" + ids[0], nil},
		{"GET", "/branches", nil},
		{"GET", "/follow-ups", nil},
		{"PATCH", "/follow-ups/" + protocol.NewFollowUpID().String(), map[string]any{"state": "held", "version": 1}},
		{"GET", "/usage", nil},
		{"PUT", "/title", map[string]any{"title": "x"}},
		{"PUT", "/archive", map[string]any{"archived": true, "version": 1}},
		{"PUT", "/pin", map[string]any{"pinned": true, "version": 1}},
		{"PUT", "/read", map[string]any{"message_id": ids[1]}},
		{"PUT", "/draft", map[string]any{"content": "x"}},
		{"POST", "/branches", map[string]any{"message_id": ids[0], "mode": "edit"}},
		{"POST", "/branches", map[string]any{"message_id": ids[0], "mode": "fork"}},
		{"PUT", "/active-branch", map[string]any{"branch_id": branch, "version": 1}},
		{"POST", "/usage", map[string]any{"kind": "k", "quantity": 1, "unit": "u"}},
	} {
		var texts [2]string
		for i, id := range []string{theirs, missing} {
			got := stranger.do(404, ask.method, "/conversations/"+id+ask.path, ask.content)
			texts[i] = strings.ReplaceAll(got.text, got.RequestID, "")
		}
		if texts[0] != texts[1] || strings.Contains(texts[0], "secret") {
			t.Errorf("%s %s reveals that the conversation exists: %s and %s", ask.method, ask.path, texts[0], texts[1])
		}
	}
}
