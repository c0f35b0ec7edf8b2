package http

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap/zaptest"

	"turnstone/actors/llm"
	"turnstone/actors/node"
	"turnstone/actors/observe"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence/limits"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/model/scripted"
)

// The authorization matrix tests every route of the router with every state that a caller can be in, on a real
// Postgres, a real Redis and a real node. A route without an entry in examples fails the test.

// example is a valid request to a route.
type example struct {
	body        func(m *matrix, of identifiers) route.Object // with the caller's identifiers; nil: no body
	raw         string                                       // a body that is not JSON; empty: none
	media       string                                       // the media type of raw; empty: text/plain
	names       []string                                     // fields of the body that contain identifiers, for example branch.message_id
	query       string
	success     int                         // the status; 0: 200
	creates     bool                        // a foreign identifier in the path creates an object of the caller
	free        bool                        // draws from no limit
	client      func(m *matrix) *client     // the client that sends the request; nil: the owner, whose session must not change
	identifiers func(m *matrix) identifiers // the identifiers in the request; nil: the owner's, which must stay valid
}

// identifiers contains identifiers of one account by their names in paths and bodies.
type identifiers map[string]string

// examples has one entry for each route.
var examples = map[string]example{
	"GET /health":   {free: true},
	"GET /ready":    {},
	"GET /version":  {},
	"GET /profiles": {},

	"POST /auth/register": {success: 201, client: (*matrix).anonymous, body: func(*matrix, identifiers) route.Object {
		return route.Object{"email": protocol.NewAccountID().String() + "@example.com", "password": testPassword, "display_name": "New"}
	}},
	"POST /auth/login": {client: (*matrix).anonymous, body: func(m *matrix, _ identifiers) route.Object {
		return route.Object{"email": m.owner.account.Email, "password": testPassword}
	}},
	"POST /auth/logout":                  {success: 204, client: (*matrix).disposableClient},
	"GET /auth/session":                  {},
	"GET /auth/sessions":                 {},
	"DELETE /auth/sessions":              {success: 204, client: (*matrix).disposableClient},
	"DELETE /auth/sessions/{session_id}": {success: 204, identifiers: func(m *matrix) identifiers { return m.identifiersOf(m.owner.newSession()) }},
	"POST /auth/password": {client: (*matrix).disposableClient, body: func(*matrix, identifiers) route.Object {
		return route.Object{"current_password": testPassword, "new_password": "another good secret"}
	}},
	"POST /auth/reauthenticate":          {client: (*matrix).disposableClient, body: func(*matrix, identifiers) route.Object { return route.Object{"password": testPassword} }},
	"GET /auth/oidc/{provider}/start":    {success: 404}, // no provider is configured here; see oidc_test.go
	"GET /auth/oidc/{provider}/callback": {success: 404},

	// The credentials of these requests answer no challenge; see passkey_test.go.
	"POST /auth/passkeys/register/start":        {},
	"POST /auth/passkeys/register/finish":       {success: 422, body: func(*matrix, identifiers) route.Object { return credential(unrequestedPasskey) }},
	"POST /auth/passkeys/sign-in/start":         {client: (*matrix).anonymous},
	"POST /auth/passkeys/sign-in/finish":        {success: 401, client: (*matrix).anonymous, body: func(*matrix, identifiers) route.Object { return credential(credentialExample) }},
	"POST /auth/passkeys/reauthenticate/start":  {},
	"POST /auth/passkeys/reauthenticate/finish": {success: 422, body: func(*matrix, identifiers) route.Object { return credential(credentialExample) }},
	"GET /account/passkeys":                     {},
	"PATCH /account/passkeys/{passkey_id}":      {body: func(*matrix, identifiers) route.Object { return route.Object{"name": "Renamed"} }},
	"DELETE /account/passkeys/{passkey_id}": {success: 204, identifiers: func(m *matrix) identifiers {
		return identifiers{"passkey_id": m.storePasskey(m.owner, "Stored").String()}
	}},

	"GET /account/identities": {},
	"DELETE /account/identities/{identity_id}": {success: 204, identifiers: func(m *matrix) identifiers {
		return identifiers{"identity_id": m.storeIdentity(m.owner, protocol.NewIdentityID().String()).String()}
	}},

	"GET /account/security-log": {},

	"GET /account": {},
	"PUT /account/email": {client: (*matrix).disposableClient, body: func(*matrix, identifiers) route.Object {
		return route.Object{"email": protocol.NewAccountID().String() + "@example.com"}
	}},
	"POST /account/pending-email/resend": {client: (*matrix).changingEmail},
	"DELETE /account/pending-email":      {success: 204, client: (*matrix).changingEmail},
	// No mail has these tokens; see recovery_test.go.
	"POST /auth/password/forgot": {success: 202, client: (*matrix).anonymous, body: func(m *matrix, _ identifiers) route.Object {
		return route.Object{"email": m.owner.account.Email}
	}},
	"POST /auth/password/reset": {success: 422, client: (*matrix).anonymous, body: func(*matrix, identifiers) route.Object {
		return route.Object{"token": "mt1_none", "password": "another good secret"}
	}},
	"POST /auth/email/verify": {success: 422, client: (*matrix).anonymous, body: func(*matrix, identifiers) route.Object { return route.Object{"token": "mt1_none"} }},

	"PUT /account/name": {body: func(*matrix, identifiers) route.Object { return route.Object{"display_name": "Renamed"} }},

	"GET /account/settings": {},
	"PUT /account/settings": {body: func(*matrix, identifiers) route.Object {
		return route.Object{"language": "en", "theme": "dark", "send_key": "enter", "busy_action": "queue", "default_profile": "auto"}
	}},

	"GET /account/instructions": {},
	"PUT /account/instructions": {body: func(m *matrix, _ identifiers) route.Object {
		return route.Object{"content": "Be brief.", "version": query[int64](m.world, `select coalesce(max(version), 0) from account_instructions where account_id = $1`, m.owner.account.AccountID)[0]}
	}},

	"GET /account/export":                         {},
	"GET /conversations/{conversation_id}/export": {},

	"POST /account/imports": {success: 202, client: (*matrix).disposableClient, body: func(*matrix, identifiers) route.Object {
		return route.Object{"format": protocol.ConversationExportFormat}
	}},
	"DELETE /account":                     {success: 409}, // it needs a confirmation
	"GET /account/imports":                {},
	"GET /account/imports/{import_id}":    {},
	"DELETE /account/imports/{import_id}": {identifiers: func(m *matrix) identifiers { return m.openImport(m.owner) }},

	"POST /transcriptions": {success: 200, raw: "a recording", media: "audio/webm"},

	"POST /files/uploads": {success: 201, names: []string{"project_id", "conversation_id"}, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{
			"filename": "a.txt", "media_type": "text/plain", "size": 10, "purpose": "attachment", "project_id": of["project_id"], "conversation_id": of["conversation_id"],
		}
	}},
	"GET /files/uploads/{upload_id}":                    {},
	"GET /files/uploads/{upload_id}/events":             {free: true, identifiers: func(m *matrix) identifiers { return m.endedUpload(m.owner) }},
	"PUT /files/uploads/{upload_id}/content":            {raw: "0123456789", identifiers: func(m *matrix) identifiers { return m.openUpload(m.owner) }},
	"DELETE /files/uploads/{upload_id}":                 {identifiers: func(m *matrix) identifiers { return m.openUpload(m.owner) }},
	"GET /files":                                        {},
	"GET /files/picker":                                 {},
	"POST /files/attachment-states":                     {body: func(_ *matrix, of identifiers) route.Object { return route.Object{"file_ids": []any{of["file_id"]}} }},
	"POST /conversations/{conversation_id}/attachments": {body: func(_ *matrix, of identifiers) route.Object { return route.Object{"file_ids": []any{of["file_id"]}} }},
	"GET /files/{file_id}":                              {},
	"GET /files/{file_id}/content":                      {},
	"GET /files/{file_id}/thumbnail":                    {identifiers: func(m *matrix) identifiers { return m.picture(m.owner) }},
	"GET /files/{file_id}/text":                         {},
	"PATCH /files/{file_id}":                            {body: func(*matrix, identifiers) route.Object { return route.Object{"filename": "b.txt"} }},
	"DELETE /files/{file_id}":                           {success: 204, identifiers: func(m *matrix) identifiers { return identifiers{"file_id": m.owner.storeFile("x").FileID.String()} }},
	"GET /projects/{project_id}/files":                  {},
	"POST /projects/{project_id}/files":                 {names: []string{"file_id"}, body: func(_ *matrix, of identifiers) route.Object { return route.Object{"file_id": of["file_id"]} }},
	"DELETE /projects/{project_id}/files/{file_id}":     {success: 204, identifiers: func(m *matrix) identifiers { return m.fileOfProject(m.owner) }},

	"GET /conversations":                         {},
	"POST /conversations":                        {success: 201, body: func(*matrix, identifiers) route.Object { return route.Object{"title": "New"} }, names: []string{"project_id"}},
	"GET /conversations/{conversation_id}":       {},
	"PUT /conversations/{conversation_id}":       {success: 201, creates: true, identifiers: missingConversation, body: func(*matrix, identifiers) route.Object { return route.Object{"title": "Mine"} }},
	"PUT /conversations/{conversation_id}/title": {body: func(*matrix, identifiers) route.Object { return route.Object{"title": "Named"} }},
	"PUT /conversations/{conversation_id}/archive": {body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"archived": true, "version": m.versionOf(of)}
	}},
	"PUT /conversations/{conversation_id}/pin": {body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"pinned": true, "version": m.versionOf(of)}
	}},
	"PUT /conversations/{conversation_id}/read": {
		body: func(_ *matrix, of identifiers) route.Object { return route.Object{"message_id": of["message_id"]} }, names: []string{"message_id"},
	},
	"PUT /conversations/{conversation_id}/draft":                 {body: func(*matrix, identifiers) route.Object { return route.Object{"content": "a draft"} }},
	"GET /conversations/{conversation_id}/find":                  {query: "?q=text"},
	"GET /conversations/{conversation_id}/messages":              {},
	"GET /conversations/{conversation_id}/messages/{message_id}": {},
	"GET /conversations/{conversation_id}/turns":                 {},
	"GET /conversations/{conversation_id}/draft":                 {},
	"GET /memory-sources":                                        {},
	"PUT /memory-sources/{source}/consent":                       {body: func(*matrix, identifiers) route.Object { return route.Object{"granted": true} }},
	"GET /conversations/{conversation_id}/location-context":      {},
	"PUT /conversations/{conversation_id}/location-context": {body: func(m *matrix, _ identifiers) route.Object {
		return route.Object{"latitude": 53.3671, "longitude": 7.2063, "accuracy_m": 40, "place": "Emden", "expires_at": m.clock.now().Add(time.Hour)}
	}},
	"DELETE /conversations/{conversation_id}/location-context": {success: 204, identifiers: func(m *matrix) identifiers {
		return identifiers{"conversation_id": (&user{m.owner}).conversation("Located")}
	}},
	"GET /conversations/{conversation_id}/branches":             {},
	"GET /conversations/{conversation_id}/branches/{branch_id}": {},
	"POST /conversations/{conversation_id}/branches": {success: 201, names: []string{"message_id"}, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"message_id": of["message_id"], "mode": "fork"}
	}},
	"PATCH /conversations/{conversation_id}/branches/{branch_id}": {body: func(*matrix, identifiers) route.Object {
		return route.Object{"name": "Named"}
	}},
	"PUT /conversations/{conversation_id}/active-branch": {names: []string{"branch_id"}, body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"branch_id": of["branch_id"], "version": m.versionOf(of)}
	}},
	"GET /conversations/{conversation_id}/follow-ups":                {},
	"GET /conversations/{conversation_id}/follow-ups/{follow_up_id}": {},
	"PATCH /conversations/{conversation_id}/follow-ups/{follow_up_id}": {body: func(*matrix, identifiers) route.Object {
		return route.Object{"state": "held", "version": 1}
	}},
	"POST /conversations/{conversation_id}/follow-ups": {
		success: 201, identifiers: func(m *matrix) identifiers { return m.conversation(m.owner) },
		body: func(*matrix, identifiers) route.Object { return route.Object{"content": "Next"} },
	},
	"PUT /conversations/{conversation_id}/follow-ups/order": {body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"order": []string{of["follow_up_id"]}, "queue_version": 1}
	}},
	"POST /conversations/{conversation_id}/follow-ups/{follow_up_id}/promote": {
		identifiers: func(m *matrix) identifiers { return m.conversation(m.owner) },
		body:        func(*matrix, identifiers) route.Object { return route.Object{"mode": "interrupt"} },
	},
	"PUT /conversations/{conversation_id}/feedback": {body: func(*matrix, identifiers) route.Object {
		return route.Object{"rating": "down", "reasons": []string{"unclear"}, "comment": "Too short"}
	}},
	"DELETE /conversations/{conversation_id}/feedback": {success: 204},
	"POST /conversations/{conversation_id}/shares": {success: 201, names: []string{"message_id"}, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"title": "For everybody", "message_id": of["message_id"], "file_ids": []any{}, "artifact_ids": []any{of["artifact_id"]}, "expires_in_days": 1}
	}},
	"GET /approvals":               {},
	"GET /approvals/{approval_id}": {},
	"GET /tools":                   {},
	"GET /conversations/{conversation_id}/artifacts": {},
	"GET /artifacts/{artifact_id}":                   {},
	"GET /artifacts/{artifact_id}/versions":          {},
	"GET /artifacts/{artifact_id}/content":           {},
	"GET /artifacts/{artifact_id}/diff":              {query: "?from=1"},
	"PUT /artifacts/{artifact_id}": {identifiers: func(m *matrix) identifiers { return m.artifact(m.owner) }, body: func(*matrix, identifiers) route.Object {
		return route.Object{"content": "changed", "version": 1}
	}},
	"POST /artifacts/{artifact_id}/restore": {identifiers: func(m *matrix) identifiers { return m.artifact(m.owner) }, body: func(*matrix, identifiers) route.Object {
		return route.Object{"version": 1, "base_version": 1}
	}},
	"GET /conversations/{conversation_id}/research-tasks": {},
	"POST /conversations/{conversation_id}/research-tasks": {success: 202, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"question": neverAnswered, "file_ids": []any{of["file_id"]}}
	}},
	"GET /research-tasks":                   {},
	"GET /research-tasks/{task_id}":         {},
	"GET /research-tasks/{task_id}/sources": {},
	"GET /research-tasks/{task_id}/events":  {free: true},
	"POST /research-tasks/{task_id}/cancel": {success: 202, identifiers: func(m *matrix) identifiers { return m.openTask(m.owner) }},
	"POST /research-tasks/{task_id}/steering": {success: 202, identifiers: func(m *matrix) identifiers { return m.openTask(m.owner) }, body: func(*matrix, identifiers) route.Object {
		return route.Object{"type": "input", "client_steering_id": "one", "input": "Only spring tides."}
	}},
	"GET /conversations/{conversation_id}/shares":           {},
	"GET /conversations/{conversation_id}/shares/preview":   {},
	"GET /shares/{share_id}":                                {},
	"GET /shares":                                           {},
	"DELETE /shares/{share_id}":                             {success: 204, identifiers: func(m *matrix) identifiers { return m.share(m.owner, m.mine, "file_ids") }},
	"GET /shared/{token}":                                   {identifiers: func(m *matrix) identifiers { return m.share(m.owner, m.mine, "file_ids") }},
	"GET /shared/{token}/files/{n}":                         {identifiers: func(m *matrix) identifiers { return m.shareFile(m.owner, m.mine) }},
	"GET /shared/{token}/artifacts/{n}":                     {identifiers: func(m *matrix) identifiers { return m.shareArtifact(m.owner, m.mine) }},
	"GET /conversations/{conversation_id}/usage":            {},
	"GET /conversations/{conversation_id}/usage/{usage_id}": {},
	"POST /conversations/{conversation_id}/usage": {success: 201, body: func(*matrix, identifiers) route.Object {
		return route.Object{"kind": "characters", "quantity": 3, "unit": "character"}
	}},
	"DELETE /conversations/{conversation_id}": {success: 204, identifiers: func(m *matrix) identifiers { return m.conversation(m.owner) }},
	"GET /usage":  {},
	"GET /search": {query: "?q=hello"},
	"PUT /conversations/{conversation_id}/project": {names: []string{"project_id"}, body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"project_id": of["project_id"], "version": m.versionOf(of)}
	}},
	"GET /conversations/{conversation_id}/move-targets": {},

	"GET /projects":              {},
	"POST /projects":             {success: 201, body: func(*matrix, identifiers) route.Object { return route.Object{"name": "New"} }},
	"GET /projects/{project_id}": {},
	"PUT /projects/{project_id}/name": {body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"name": "Named", "version": m.versionOfProject(of, "version")}
	}},
	"PUT /projects/{project_id}/archive": {identifiers: func(m *matrix) identifiers { return m.anotherProject(m.owner) }, body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"archived": false, "version": m.versionOfProject(of, "version")}
	}},
	"DELETE /projects/{project_id}": {success: 409}, // without a version; see project_test.go
	"POST /projects/{project_id}/restore": {success: 409, body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"version": m.versionOfProject(of, "version")}
	}},
	"GET /projects/{project_id}/settings": {},
	"PUT /projects/{project_id}/settings": {body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"default_profile": "auto", "version": m.versionOfProject(of, "settings_version")}
	}},
	"GET /projects/{project_id}/instructions": {},
	"PUT /projects/{project_id}/instructions": {body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"content": "Be brief.", "version": m.versionOfProject(of, "instructions_version")}
	}},
	"GET /prompts": {query: "?q=greet"},
	"POST /prompts": {success: 201, names: []string{"project_id"}, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"project_id": of["project_id"], "name": promptName(), "text": "Hello {{name}}"}
	}},
	"GET /prompts/{prompt_id}": {},
	"PATCH /prompts/{prompt_id}": {body: func(m *matrix, of identifiers) route.Object {
		return route.Object{"text": "Good day {{name}}", "version": m.versionOfPrompt(of)}
	}},
	"DELETE /prompts/{prompt_id}":               {success: 204, identifiers: func(m *matrix) identifiers { return m.prompt(m.owner) }},
	"GET /projects/{project_id}/work-history":   {},
	"GET /projects/{project_id}/search":         {query: "?q=hello"},
	"GET /projects/{project_id}/conversations":  {},
	"POST /projects/{project_id}/conversations": {success: 201, body: func(*matrix, identifiers) route.Object { return route.Object{"title": "New"} }},
	"GET /events": {},

	"POST /chat": {names: []string{"conversation_id", "branch.message_id"}, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"conversation_id": of["conversation_id"], "input": []route.Object{{"type": "text", "text": "Hello"}}}
	}},
	"POST /chat/steering": {success: 409, names: []string{"turn_id"}, body: func(_ *matrix, of identifiers) route.Object {
		return route.Object{"type": "input", "turn_id": of["turn_id"], "client_steering_id": "one", "input": []route.Object{{"type": "text", "text": "faster"}}}
	}},
	"GET /chat/turns/{turn_id}":        {},
	"GET /chat/turns/{turn_id}/events": {free: true},
}

// missingConversation returns the identifier of a conversation that does not exist.
func missingConversation(*matrix) identifiers {
	return identifiers{"conversation_id": protocol.NewConversationID().String()}
}

// unusedID returns a new identifier that names nothing, for a field of this name.
func unusedID(name string) string {
	switch name[strings.LastIndex(name, ".")+1:] {
	case "conversation_id":
		return protocol.NewConversationID().String()
	case "message_id":
		return protocol.NewMessageID().String()
	case "branch_id":
		return protocol.NewBranchID().String()
	case "follow_up_id":
		return protocol.NewFollowUpID().String()
	case "turn_id":
		return protocol.NewTurnID().String()
	case "usage_id":
		return protocol.NewUsageID().String()
	case "import_id":
		return protocol.NewImportID().String()
	case "session_id":
		return protocol.NewSessionID().String()
	case "identity_id":
		return protocol.NewIdentityID().String()
	case "passkey_id":
		return protocol.NewPasskeyID().String()
	case "share_id":
		return protocol.NewShareID().String()
	case "token":
		return "sh1_" + strings.Repeat("A", 43)
	case "project_id":
		return protocol.NewProjectID().String()
	case "prompt_id":
		return protocol.NewPromptID().String()
	case "upload_id":
		return protocol.NewUploadID().String()
	case "approval_id":
		return protocol.DeriveApprovalID(protocol.NewTurnID(), 1).String()
	case "artifact_id":
		return protocol.NewArtifactID().String()
	case "task_id":
		return protocol.NewTaskID().String()
	case "file_id":
		return protocol.DeriveFileID(protocol.NewUploadID()).String()
	}
	panic("the identifier type of " + name + " is unknown: add it to unusedID")
}

// switchLimiter delegates to its current limiter: open never refuses, each bucket of exhausted has one token, and
// unreachable cannot connect to Redis.
type switchLimiter struct{ open, exhausted, unreachable, current *limits.Limiter }

func (l *switchLimiter) Take(ctx context.Context, bucket, key string) (limits.Decision, error) {
	if l.current == l.exhausted { // use up the one token; the prefix makes the keys differ from those of the other limiters
		key = "exhausted " + key
		if first, err := l.exhausted.Take(ctx, bucket, key); err != nil || !first.Allowed {
			return first, err
		}
	}
	return l.current.Take(ctx, bucket, key)
}

func limiterWith(t *testing.T, url string, limit limits.Limit) *limits.Limiter {
	t.Helper()
	shared := map[string]limits.Limit{}
	for _, b := range []route.Bucket{"writes", route.BucketShares, route.BucketShared, route.BucketChat, "search", "cancel", "uploads", auth.BucketSignIn, auth.BucketSignInAccount, auth.BucketSignInReserve} {
		shared[string(b)] = limit
	}
	limiter, err := limits.NewLimiter(limits.LimiterConfig{URL: url, Shared: shared, Local: map[string]limits.Limit{
		string(route.BucketReads): limit, string(route.BucketReplays): limit, string(route.BucketRefusals): {Rate: 10_000, Period: time.Second, Burst: 10_000},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	return limiter
}

// matrix is a world with two accounts that share nothing.
type matrix struct {
	*world
	limits          *switchLimiter
	owner, stranger *client
	mine, theirs    identifiers       // the owner's and the stranger's
	cursor          string            // of the owner's list of conversations
	bad             map[string]string // session tokens that must be refused, by what is wrong with them
	rotated         *client           // a client whose session token was replaced; nil: not created yet
	oldCSRF         string            // the CSRF token of rotated before that
}

// mediaType returns the media type of a body that is not JSON.
func (e *example) mediaType() string { return cmp.Or(e.media, "text/plain") }

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	return matrixOn(t, pgtest.NewDatabase(t), func(*testConfig) {})
}

func matrixOn(t *testing.T, database pgtest.Database, change func(*testConfig)) *matrix {
	t.Helper()
	redis := embeddedtest.Redis(t).URL()
	plenty := limits.Limit{Rate: 1_000_000, Period: time.Second, Burst: 1_000_000}
	m := &matrix{limits: &switchLimiter{
		open: limiterWith(t, redis, plenty), exhausted: limiterWith(t, redis, limits.Limit{Rate: 1, Period: time.Hour, Burst: 1}),
		unreachable: limiterWith(t, "unix:///nowhere/redis.sock", plenty),
	}}
	m.limits.current = m.limits.open
	m.world = worldOn(t, database, func(c *testConfig) {
		c.Limiter, c.MailConfigured, c.Transcriber = m.limits, true, hearing(t)
		change(c)
		liveOn(t, c)
	})
	m.owner, m.stranger = m.client().register("owner@example.com"), m.client().register("stranger@example.com")
	m.mine, m.theirs = m.conversation(m.owner), m.conversation(m.stranger)
	m.conversation(m.owner)
	var list protocol.List[protocol.Conversation]
	m.owner.expect(200, "GET", "/conversations?limit=1", nil).into(t, &list)
	m.cursor = *list.NextCursor
	return m
}

// liveOn sets the node and the store of a configuration to new ones, with the scripted model.
func liveOn(t *testing.T, c *testConfig) {
	t.Helper()
	c.Turns = nodeOn(t, c, scripted.New(scripted.Options{}), nil, func() { t.Error("the node was fenced") })
}

// nodeOn starts a node with a model and sets c.TurnStore to the store of the node. A non-nil predecessor is the node
// that the new one replaces.
func nodeOn(t *testing.T, c *testConfig, model llm.Model, predecessor *protocol.NodeID, fenced func()) *testNode {
	t.Helper()
	const live = 5
	store := c.DB.StartTurns(turns.Options{Logger: c.Log})
	t.Cleanup(store.Close)
	var of turn.Store = store
	if c.wrapTurns != nil {
		of = c.wrapTurns(store)
	}
	n := c.startNode(t, node.Config{Predecessor: predecessor, Fenced: fenced}, turn.Config{
		Store: of, FollowUps: c.DB.FollowUps, Log: store, Files: c.DB.FileTexts, Ownership: store,
		Model: model, Routes: routing.Defaults("a", "b", "c"), Tools: catalogueOf(t, c.DB), Approvals: c.DB.Approvals, Consents: c.DB.Memory, MaxLiveTurns: live, Observer: observe.Observer{Tracer: c.Tracer},
		Logger: zaptest.NewLogger(t),
	}, c.uploads)
	c.TurnStore, c.MaxLiveTurns = store, live
	return n
}

// conversation creates a conversation with a finished turn and a held follow-up, and returns their identifiers.
func (m *matrix) conversation(c *client) identifiers {
	m.t.Helper()
	resp := c.expect(200, "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": "Hello"}}})
	_, rest, _ := strings.Cut(string(resp.body), "data: ")
	line, _, _ := strings.Cut(rest, "\n")
	_, payload, err := protocol.DecodeEvent([]byte(line))
	started, isStart := payload.(*protocol.TurnStarted)
	if err != nil || !isStart {
		m.t.Fatalf("the stream starts with %s", line)
	}
	of := m.identifiersOf(c)
	of["conversation_id"], of["branch_id"] = started.ConversationID.String(), started.BranchID.String()
	of["message_id"], of["turn_id"] = started.UserMessageID.String(), resp.header.Get("X-Turn-Id")
	of["follow_up_id"] = m.storeHeldFollowUp(c.account.AccountID, started.ConversationID).String()
	of["import_id"] = m.storeImport(c, "completed").String()
	of["identity_id"] = m.storeIdentity(c, of["conversation_id"]).String()
	of["passkey_id"], of["provider"] = m.storePasskey(c, "Stored").String(), "none"
	var project protocol.Project
	c.expect(201, "POST", "/projects", route.Object{"name": "Project"}).into(m.t, &project)
	of["project_id"] = project.ProjectID.String()
	of["prompt_id"] = m.prompt(c)["prompt_id"]
	var used protocol.List[protocol.UsageRecord]
	c.expect(200, "GET", "/conversations/"+of["conversation_id"]+"/usage", nil).into(m.t, &used)
	of["usage_id"] = used.Data[0].UsageID.String()
	of["upload_id"], of["file_id"] = c.startUpload(10).UploadID.String(), c.storeFile("A text.").FileID.String()
	of["approval_id"] = storeApproval(m.world, of["turn_id"])
	of["artifact_id"] = c.storeArtifact(m.world, started.ConversationID).ArtifactID.String()
	of["task_id"] = m.endedTask(c, of["conversation_id"])
	c.expect(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	c.expect(200, "PUT", "/conversations/"+of["conversation_id"]+"/location-context", route.Object{"latitude": 1, "longitude": 2, "accuracy_m": 3, "expires_at": m.clock.now().Add(time.Hour)})
	return m.share(c, of, "file_ids")
}

// anotherProject returns the identifier of a new project.
func (m *matrix) anotherProject(c *client) identifiers {
	var project protocol.Project
	c.expect(201, "POST", "/projects", route.Object{"name": "Another"}).into(m.t, &project)
	return identifiers{"project_id": project.ProjectID.String()}
}

// prompt returns the identifier of a new prompt of an account.
func (m *matrix) prompt(c *client) identifiers {
	var prompt protocol.Prompt
	c.expect(201, "POST", "/prompts", route.Object{"name": promptName(), "text": "Hello {{name}}"}).into(m.t, &prompt)
	return identifiers{"prompt_id": prompt.PromptID.String()}
}

// promptName returns a name that no prompt has.
func promptName() string { return protocol.NewPromptID().String() }

func (m *matrix) versionOfPrompt(of identifiers) int64 {
	var id protocol.PromptID
	if id.UnmarshalText([]byte(of["prompt_id"])) != nil {
		return 0
	}
	return query[int64](m.world, `select coalesce(max(version), 0) from prompts where prompt_id = $1`, id)[0]
}

// artifact returns the identifier of an artifact that has its first version.
func (m *matrix) artifact(c *client) identifiers {
	return identifiers{"artifact_id": c.storeArtifact(m.world, (&user{c}).parse(m.mine["conversation_id"])).ArtifactID.String()}
}

// endedTask starts a research task in a conversation and cancels it.
func (m *matrix) endedTask(c *client, conversation string) string {
	m.t.Helper()
	var task protocol.ResearchTask
	c.expect(202, "POST", "/conversations/"+conversation+"/research-tasks", route.Object{"question": neverAnswered}).into(m.t, &task)
	c.expect(202, "POST", "/research-tasks/"+task.TaskID.String()+"/cancel", nil)
	c.expect(200, "GET", "/research-tasks/"+task.TaskID.String()+"/events", nil) // until its end
	return task.TaskID.String()
}

// openTask returns the identifier of a research task that does not end by itself. It ends the earlier ones.
func (m *matrix) openTask(c *client) identifiers {
	m.t.Helper()
	var tasks protocol.List[protocol.ResearchTask]
	below := "/conversations/" + m.mine["conversation_id"] + "/research-tasks"
	c.expect(200, "GET", below, nil).into(m.t, &tasks)
	for _, task := range tasks.Data {
		if !task.State.Terminal() {
			c.do("POST", "/research-tasks/"+task.TaskID.String()+"/cancel", nil) // 409 if it has ended in the meantime
		}
	}
	var task protocol.ResearchTask
	c.expect(202, "POST", below, route.Object{"question": neverAnswered}).into(m.t, &task)
	return identifiers{"task_id": task.TaskID.String()}
}

// openUpload returns the identifier of an upload that waits for its content.
func (m *matrix) openUpload(c *client) identifiers {
	return identifiers{"upload_id": c.startUpload(10).UploadID.String()}
}

// endedUpload returns the identifier of an upload that has ended.
func (m *matrix) endedUpload(c *client) identifiers {
	of := m.openUpload(c)
	c.expect(200, "DELETE", "/files/uploads/"+of["upload_id"], nil)
	return of
}

// fileOfProject returns the identifiers of a project and of one of its files.
func (m *matrix) fileOfProject(c *client) identifiers {
	of := identifiers{"project_id": m.mine["project_id"], "file_id": c.storeFile("Of a project.").FileID.String()}
	c.expect(200, "POST", "/projects/"+of["project_id"]+"/files", route.Object{"file_id": of["file_id"]})
	return of
}

// picture returns the identifier of a file with a thumbnail.
func (m *matrix) picture(c *client) identifiers {
	of := identifiers{"file_id": c.storeFile("A picture.").FileID.String()}
	m.database.Admin(m.t, `
		update file_texts t set state = 'none', width = 3, height = 2, thumbnail = '\xffd8'
		from files f where t.file_id = f.file_id and t.account_id = $1 and f.sha256 = sha256('A picture.')`, c.account.AccountID)
	return of
}

// share shares a conversation with what a member of the request names, and returns its identifiers with those of the share.
func (m *matrix) share(c *client, of identifiers, member string, ids ...any) identifiers {
	m.t.Helper()
	var share protocol.CreatedShare
	c.expect(201, "POST", "/conversations/"+of["conversation_id"]+"/shares", route.Object{member: append([]any{}, ids...)}).into(m.t, &share)
	shared := maps.Clone(of)
	shared["share_id"], shared["token"], shared["n"] = share.ShareID.String(), share.Token, "1"
	return shared
}

// shareFile shares a conversation with a file.
func (m *matrix) shareFile(c *client, of identifiers) identifiers {
	m.t.Helper()
	u := &user{c}
	file := c.storeFile("Shared.")
	u.attach(of["message_id"], file)
	return m.share(c, of, "file_ids", file.FileID)
}

// shareArtifact shares a conversation with an artifact.
func (m *matrix) shareArtifact(c *client, of identifiers) identifiers {
	m.t.Helper()
	return m.share(c, of, "artifact_ids", of["artifact_id"])
}

// openImport returns the identifier of an import that can be cancelled.
func (m *matrix) openImport(c *client) identifiers {
	m.database.Admin(m.t, `delete from imports where account_id = $1 and state = 'queued'`, c.account.AccountID)
	return identifiers{"import_id": m.storeImport(c, "queued").String()}
}

func (m *matrix) storeImport(c *client, state string) protocol.ImportID {
	id := protocol.NewImportID()
	m.database.Admin(m.t, `insert into imports (account_id, import_id, state) values ($1, $2, $3)`, c.account.AccountID, id, state)
	return id
}

// storePasskey stores a passkey that no authenticator has.
func (w *world) storePasskey(c *client, name string) protocol.PasskeyID {
	w.t.Helper()
	id := protocol.NewPasskeyID()
	w.database.Admin(w.t, `insert into passkeys (account_id, passkey_id, credential_id, public_key, sign_count, aaguid, name, backup_eligible, backed_up, created_at)
		values ($1, $2, uuid_send($2), '', 0, gen_random_uuid(), $3, false, false, now())`, c.account.AccountID, id, name)
	return id
}

// storeIdentity links an identity at a provider that is not configured.
func (w *world) storeIdentity(c *client, subject string) protocol.IdentityID {
	w.t.Helper()
	id := protocol.NewIdentityID()
	w.database.Admin(w.t, `insert into account_identities (issuer, subject, account_id, identity_id) values ('https://issuer.example', $1, $2, $3)`, subject, c.account.AccountID, id)
	return id
}

// unrequestedPasskey is a new passkey that the service has not requested.
var unrequestedPasskey = route.Object{
	"id": "kx7bW3Uq0mY", "rawId": "kx7bW3Uq0mY", "type": "public-key",
	"response": route.Object{"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0", "attestationObject": "o2NmbXRkbm9uZQ"},
}

// storeHeldFollowUp stores a held follow-up, which waits until its owner releases it.
func (w *world) storeHeldFollowUp(account protocol.AccountID, conversation protocol.ConversationID) protocol.FollowUpID {
	w.t.Helper()
	id := protocol.NewFollowUpID()
	w.database.Admin(w.t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position) values ($1, $2, $3, 'held', 'later', 1)`,
		account, id, conversation)
	return id
}

// identifiersOf returns the identifiers of a client that has no conversation.
func (m *matrix) identifiersOf(c *client) identifiers {
	m.t.Helper()
	var list protocol.List[protocol.Device]
	c.expect(200, "GET", "/auth/sessions", nil).into(m.t, &list)
	for _, device := range list.Data {
		if device.Current {
			return identifiers{"session_id": device.SessionID.String(), "provider": "none", "source": "location"}
		}
	}
	m.t.Fatal("no session of the list is the current one")
	return nil
}

func (m *matrix) versionOf(of identifiers) int64 {
	var id protocol.ConversationID
	if id.UnmarshalText([]byte(of["conversation_id"])) != nil {
		return 0
	}
	return query[int64](m.world, `select coalesce(max(version), 0) from conversations where conversation_id = $1`, id)[0]
}

// versionOfProject returns a version of a project: its own (column version), or that of its settings or instructions.
func (m *matrix) versionOfProject(of identifiers, column string) int64 {
	var id protocol.ProjectID
	if id.UnmarshalText([]byte(of["project_id"])) != nil {
		return 0
	}
	return query[int64](m.world, `select coalesce(max(`+column+`), 0) from projects where project_id = $1`, id)[0]
}

// disposableClient returns the client of a new account, for requests that end or change its session.
func (m *matrix) disposableClient() *client {
	return m.client().register(protocol.NewAccountID().String() + "@example.com")
}

// changingEmail returns the client of a new account whose new address is not confirmed.
func (m *matrix) changingEmail() *client {
	c := m.disposableClient()
	c.changeEmail(protocol.NewAccountID().String() + "@example.com")
	return c
}

// anonymous returns a client that is not signed in.
func (m *matrix) anonymous() *client { return m.client() }

// newSession returns a client with another session of the same account.
func (c *client) newSession() *client { return c.client().login(c.account.Email) }

func nameOf(r route.Route) string { return r.Method + " " + r.Path }

// fill replaces the names in a path by identifiers.
func fill(path string, of identifiers) string {
	for _, name := range pathNames(path) {
		path = strings.ReplaceAll(path, "{"+name+"}", of[name])
	}
	return path
}

// ask sends the example of a route, with these identifiers.
func (m *matrix) ask(c *client, r route.Route, of identifiers, headers ...string) *reply {
	m.t.Helper()
	e := examples[nameOf(r)]
	var content any
	if e.body != nil {
		content = e.body(m, of)
	}
	if e.raw != "" {
		content, headers = rawBody(e.raw), append([]string{"Content-Type", e.mediaType()}, headers...)
	}
	return m.send(c, r, of, content, headers...)
}

func (m *matrix) send(c *client, r route.Route, of identifiers, content any, headers ...string) *reply {
	m.t.Helper()
	resp := c.do(r.Method, fill(r.Path, of)+examples[nameOf(r)].query, content, headers...)
	m.checkHeaders(r, resp)
	return resp
}

// checkHeaders checks the headers that every response must have.
func (m *matrix) checkHeaders(r route.Route, resp *reply) {
	m.t.Helper()
	policy := apiPolicy
	downloads := []string{"GET /files/{file_id}/content", "GET /files/{file_id}/thumbnail", "GET /shared/{token}/files/{n}", "GET /shared/{token}/artifacts/{n}", "GET /artifacts/{artifact_id}/content"}
	if slices.Contains(downloads, nameOf(r)) && resp.status < 300 {
		policy = downloadPolicy
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": policy, "Strict-Transport-Security": "max-age=63072000; includeSubDomains",
		"Server": "", "X-Powered-By": "", "Access-Control-Allow-Origin": "",
	} {
		if got := resp.header.Get(name); got != want {
			m.t.Errorf("%s: %s is %q, want %q", nameOf(r), name, got, want)
		}
	}
	if !strings.HasPrefix(resp.header.Get("X-Request-Id"), "req_") {
		m.t.Errorf("%s: no X-Request-Id", nameOf(r))
	}
	cache := resp.header.Get("Cache-Control")
	want := "private, no-cache"
	if r.Policy.NoStore {
		want = "no-store"
	}
	if cache != want && !(r.Streams && strings.HasPrefix(cache, "no-cache")) {
		m.t.Errorf("%s: Cache-Control is %q, want %q", nameOf(r), cache, want)
	}
	if resp.status >= 400 && (resp.header.Get("Content-Type") != "application/problem+json" || resp.Problem.Status != resp.status || resp.RequestID == "") && r.Path != "/ready" {
		m.t.Errorf("%s: %d is not a problem document: %s", nameOf(r), resp.status, resp.body)
	}
}

// rows returns the counts, and some sums of versions, of the rows that requests can create or change.
func (m *matrix) rows() string {
	return query[string](m.world, `select concat_ws(' ', (select count(*) from accounts), (select count(*) from conversations),
		(select count(*) from messages), (select count(*) from turns), (select count(*) from branches), (select count(*) from follow_ups),
		(select count(*) from uploads), (select count(*) from files), (select count(*) from project_files), (select coalesce(sum(version), 0) from artifacts), (select coalesce(sum(version), 0) from files),
		(select count(*) from usage_records), (select count(*) from shares), (select count(*) from messages where feedback is not null), (select count(*) from idempotency), (select count(*) from account_settings), (select count(*) from account_instructions), (select coalesce(sum(version), 0) from prompts), (select count(*) from memory_consents where granted), (select count(*) from location_contexts),
		(select count(*) from sessions where revoked_at is null), (select count(*) from oidc_flows), (select count(*) from passkeys), (select count(*) from passkey_flows), (select sum(version) from conversations),
		(select sum(draft_version) from conversations))`)[0]
}

func TestTheAuthorizationMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	known := map[string]bool{}
	for _, r := range m.Routes() {
		known[nameOf(r)] = true
		if _, has := examples[nameOf(r)]; !has {
			t.Errorf("%s has no example: add one", nameOf(r))
		}
	}
	for name := range examples {
		if !known[name] {
			t.Errorf("%s has an example but is not a route", name)
		}
	}
	if t.Failed() {
		return
	}
	var cells int
	each := func(name string, cell func(m *matrix, r route.Route) int) {
		t.Run(name, func(t *testing.T) {
			outer := m.t
			m.t = t
			defer func() { m.t = outer }()
			for _, r := range m.Routes() {
				before := m.owner.token()
				cells += cell(m, r)
				if m.owner.token() != before {
					t.Fatalf("%s %s replaced the owner's token: the following results would be wrong", name, nameOf(r))
				}
			}
		})
	}
	each("without a valid session", (*matrix).withoutSession)
	each("without the CSRF token", (*matrix).withoutCSRF)
	each("from another site", (*matrix).fromOtherSite)
	each("without a recent sign-in", (*matrix).withoutSudo)
	each("over the limit", (*matrix).overLimit)
	each("with a foreign identifier in the path", (*matrix).foreignPath)
	each("with a foreign identifier in the body", (*matrix).foreignBody)
	each("with a foreign identifier in the query", (*matrix).foreignQuery)
	each("with a foreign cursor", (*matrix).foreignCursor)
	each("by another method", (*matrix).otherMethods)
	each("with a valid request", (*matrix).validRequest)
	t.Logf("%d routes, %d cells", len(m.Routes()), cells)
}

// withoutSession checks that every route that is not public returns the same 401, whatever is wrong with the session.
// Like the functions below, it returns the number of cells that it tested.
func (m *matrix) withoutSession(r route.Route) int {
	if r.Policy.Public {
		return 0
	}
	states := m.badSessions()
	var first *reply
	for _, name := range slices.Sorted(maps.Keys(states)) {
		c := m.client()
		c.csrf = m.owner.csrf
		if states[name] != "" {
			c.cookies[c.cookieName()] = states[name]
		}
		resp := m.ask(c, r, m.mine)
		if resp.status != 401 || !strings.Contains(resp.header.Get("Set-Cookie"), "Max-Age=0") {
			m.t.Errorf("%s, %s: %d %s", nameOf(r), name, resp.status, resp.body)
		}
		if first == nil {
			first = resp
		}
		if !alike(first, resp) {
			m.t.Errorf("%s, %s: %s differs from %s", nameOf(r), name, resp.body, first.body)
		}
	}
	return len(states)
}

// badSessions returns session tokens that must be refused, by what is wrong with them. The first call creates them.
func (m *matrix) badSessions() map[string]string {
	if m.bad != nil {
		return m.bad
	}
	invalidate := func(sql string) string {
		c := m.disposableClient()
		m.database.Admin(m.t, sql, c.account.AccountID, m.clock.now())
		return c.token()
	}
	m.bad = map[string]string{
		"no cookie": "", "garbage": "garbage", "unknown": tokenPrefix + encode(make([]byte, tokenBytes)),
		"unused too long": invalidate(`update sessions set last_used_at = $2::timestamptz - interval '7 days' where account_id = $1`),
		"too old":         invalidate(`update sessions set expires_at = $2 where account_id = $1`),
		"revoked":         invalidate(`update sessions set revoked_at = $2 where account_id = $1`),
		"disabled":        invalidate(`update accounts set disabled_at = $2 where account_id = $1`),
	}
	return m.bad
}

// withoutCSRF checks that an unsafe request needs the CSRF token that belongs to the current token of its session.
func (m *matrix) withoutCSRF(r route.Route) int {
	if r.Policy.Public || route.Safe(r.Method) {
		return 0
	}
	if m.rotated == nil {
		m.rotated = m.disposableClient()
		m.oldCSRF = m.rotated.csrf
		m.rotated.storeSession(m.rotated.expect(200, "POST", "/auth/reauthenticate", route.Object{"password": testPassword}))
		m.rotated.session()
	}
	states := map[string]struct {
		c     *client
		token string
	}{
		"none": {m.owner, ""}, "garbage": {m.owner, "garbage"}, "of another session": {m.owner, m.stranger.csrf},
		"of the previous session token": {m.rotated, m.oldCSRF},
	}
	for name, state := range states {
		resp := m.ask(state.c, r, m.mine, auth.CSRFHeader, state.token)
		if resp.status != 403 || resp.Code != protocol.CodeCSRF {
			m.t.Errorf("%s, %s: %d %s", nameOf(r), name, resp.status, resp.body)
		}
	}
	return len(states)
}

// fromOtherSite checks that no other site, subdomain or opaque origin may request a change, on public routes too.
func (m *matrix) fromOtherSite(r route.Route) int {
	if route.Safe(r.Method) {
		return 0
	}
	before := m.rows()
	states := [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "https://sub.turnstone.example"},
		{"Origin", "http://turnstone.example"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
	}
	for _, headers := range states {
		resp := m.ask(m.owner, r, m.mine, headers...)
		if resp.status != 403 || resp.Code != protocol.CodeOrigin {
			m.t.Errorf("%s, %v: %d %s", nameOf(r), headers, resp.status, resp.body)
		}
	}
	if after := m.rows(); after != before {
		m.t.Errorf("%s had an effect: %s, then %s", nameOf(r), before, after)
	}
	return len(states)
}

// withoutSudo checks that a route with the sudo policy returns 403 if the last sign-in is ten minutes old.
func (m *matrix) withoutSudo(r route.Route) int {
	if !r.Policy.Sudo {
		return 0
	}
	c := m.disposableClient()
	m.database.Admin(m.t, `update sessions set reauthenticated_at = $2::timestamptz - interval '10 minutes' where account_id = $1`, c.account.AccountID, m.clock.now())
	if resp := m.ask(c, r, m.mine); resp.status != 403 || resp.Code != protocol.CodeReauthRequired {
		m.t.Errorf("%s: %d %s", nameOf(r), resp.status, resp.body)
	}
	return 1
}

// overLimit checks that a request over the limit gets 429, that it gets 503 if the limiter cannot decide, and that
// neither has an effect. Reads are counted in this process, so their limiter can always decide.
func (m *matrix) overLimit(r route.Route) int {
	if examples[nameOf(r)].free {
		return 0
	}
	defer func() { m.limits.current = m.limits.open }()
	before := m.rows()
	m.limits.current = m.limits.exhausted
	resp := m.ask(m.owner, r, m.mine)
	wait, err := strconv.Atoi(resp.header.Get("Retry-After"))
	if resp.status != 429 || resp.Code != protocol.CodeRateLimited || err != nil || wait < 1 || resp.header.Get("RateLimit") == "" {
		m.t.Errorf("%s over the limit: %d %s %v", nameOf(r), resp.status, resp.body, resp.header)
	}
	if r.Policy.Bucket == route.BucketReads {
		return 1
	}
	m.limits.current = m.limits.unreachable
	resp = m.ask(m.owner, r, m.mine)
	if resp.status != 503 || resp.header.Get("Retry-After") == "" {
		m.t.Errorf("%s without a limiter: %d %s", nameOf(r), resp.status, resp.body)
	}
	if after := m.rows(); after != before {
		m.t.Errorf("%s had an effect: %s, then %s", nameOf(r), before, after)
	}
	return 2
}

// foreignPath checks that an identifier of another account gets the same response, byte for byte, as one that names
// nothing and as a malformed one, also with a wrong body and with headers that claim another caller.
func (m *matrix) foreignPath(r route.Route) int {
	names, cells := identifierNames(r.Path), 0
	if len(names) == 0 || r.Policy.Public || examples[nameOf(r)].creates {
		return 0
	}
	for _, name := range names {
		own := maps.Clone(m.theirs)
		ask := func(value string, headers ...string) *reply {
			own[name] = value
			cells++
			return m.ask(m.stranger, r, own, headers...)
		}
		wrongBody := func(value string) *reply {
			own[name] = value
			cells++
			return m.send(m.stranger, r, own, route.Object{"nonsense": 1}, "Content-Type", "text/plain")
		}
		missing := ask(unusedID(name))
		if missing.status != 404 || missing.Code != protocol.CodeNotFound {
			m.t.Errorf("%s, %s missing: %d %s", nameOf(r), name, missing.status, missing.body)
		}
		for what, resp := range map[string]*reply{
			"foreign":                      ask(m.mine[name]),
			"malformed":                    ask(strings.ToUpper(m.mine[name])),
			"of another kind":              ask("acct_" + strings.TrimLeft(m.mine[name], "abcdefghijklmnopqrstuvwxyz_")),
			"foreign, as its owner":        ask(m.mine[name], "X-User-Id", m.owner.account.AccountID.String(), "X-Forwarded-User", m.owner.account.Email, "X-Account-Id", m.owner.account.AccountID.String()),
			"foreign, with a wrong body":   wrongBody(m.mine[name]),
			"malformed, with a wrong body": wrongBody("nonsense"),
		} {
			if !alike(missing, resp) || !sameHeaders(missing, resp) {
				m.t.Errorf("%s, %s %s: %d %s %v, missing: %d %s %v", nameOf(r), name, what, resp.status, resp.body, resp.header, missing.status, missing.body, missing.header)
			}
		}
	}
	return cells
}

// sameHeaders reports whether two responses have the same headers, except for those that differ between any two
// requests.
func sameHeaders(a, b *reply) bool {
	strip := func(r *reply) map[string][]string {
		header := maps.Clone(r.header)
		for _, name := range []string{"X-Request-Id", "Ratelimit"} {
			delete(header, name)
		}
		return header
	}
	return maps.EqualFunc(strip(a), strip(b), slices.Equal)
}

// foreignBody checks that an identifier in a body gets 404 if it names nothing of the caller, and 422 if it is
// malformed.
func (m *matrix) foreignBody(r route.Route) int {
	e := examples[nameOf(r)]
	for _, name := range e.names {
		with := func(value string) *reply {
			content := e.body(m, m.theirs)
			parent, field, nested := strings.Cut(name, ".")
			if nested {
				content[parent] = route.Object{field: value, "mode": "edit"}
			} else {
				content[parent] = value
			}
			content["account_id"], content["owner"], content["role"] = m.owner.account.AccountID, m.owner.account.Email, "admin"
			return m.send(m.stranger, r, m.theirs, content)
		}
		field := name[strings.LastIndex(name, ".")+1:]
		foreign := unusedID(name)
		if m.mine[field] != "" {
			foreign = m.mine[field]
		}
		missing, theirs, malformed := with(unusedID(name)), with(foreign), with("nonsense")
		if missing.status != 404 || !alike(missing, theirs) || !sameHeaders(missing, theirs) {
			m.t.Errorf("%s, %s: missing %d %s, foreign %d %s", nameOf(r), name, missing.status, missing.body, theirs.status, theirs.body)
		}
		if malformed.status != 422 || len(malformed.Errors) == 0 || malformed.Errors[0].Field != "body."+name {
			m.t.Errorf("%s, %s malformed: %d %s", nameOf(r), name, malformed.status, malformed.body)
		}
	}
	return 3 * len(e.names)
}

// queryOf returns the query of the example of a route, to which a parameter can be appended.
func queryOf(r route.Route) string {
	if query := examples[nameOf(r)].query; query != "" {
		return query + "&"
	}
	return "?"
}

// foreignQuery checks that an identifier of another account in the query gets the same response as one that names
// nothing, and that a malformed one gets 422.
func (m *matrix) foreignQuery(r route.Route) int {
	cells := 0
	for _, param := range route.OperationAt(m.OpenAPI(), r.Method, r.Path).Parameters {
		prefix, _, isID := strings.Cut(strings.TrimPrefix(param.Schema.Pattern, "^"), "_")
		if param.In != "query" || !isID {
			continue
		}
		field := map[string]string{"conv": "conversation_id", "msg": "message_id", "br": "branch_id", "turn": "turn_id", "proj": "project_id"}[prefix]
		with := func(value string) *reply {
			cells++
			return m.stranger.do(r.Method, fill(r.Path, m.theirs)+queryOf(r)+param.Name+"="+value, nil)
		}
		foreign := m.mine[field]
		if foreign == "" {
			foreign = unusedID(field)
		}
		missing, theirs, malformed := with(unusedID(field)), with(foreign), with("nonsense")
		if !alike(missing, theirs) || missing.status != 404 && missing.status != 409 && missing.status != 200 || malformed.status != 422 {
			m.t.Errorf("%s, %s: missing %d %s, foreign %d %s, malformed %d", nameOf(r), param.Name, missing.status, missing.body, theirs.status, theirs.body, malformed.status)
		}
	}
	return cells
}

// foreignCursor checks that a cursor of another account gets the same response as garbage, and that an invalid limit
// gets 422.
func (m *matrix) foreignCursor(r route.Route) int {
	op := route.OperationAt(m.OpenAPI(), r.Method, r.Path)
	if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == "cursor" }) {
		return 0
	}
	path := fill(r.Path, m.theirs) + queryOf(r)
	foreign, garbage := m.stranger.do(r.Method, path+"cursor="+m.cursor, nil), m.stranger.do(r.Method, path+"cursor=garbage", nil)
	if foreign.status != 422 || !alike(foreign, garbage) {
		m.t.Errorf("%s: foreign %d %s, garbage %d %s", nameOf(r), foreign.status, foreign.body, garbage.status, garbage.body)
	}
	for _, limit := range []string{"0", "101", "x", "-1"} {
		if resp := m.owner.do(r.Method, fill(r.Path, m.mine)+queryOf(r)+"limit="+limit, nil); resp.status != 422 {
			m.t.Errorf("%s, limit %s: %d", nameOf(r), limit, resp.status)
		}
	}
	return 6
}

// otherMethods checks that a method that a path does not support gets 405 with a session, and 401 without an Allow
// header otherwise. HEAD has the status and the headers of GET, or 405 if GET has effects.
func (m *matrix) otherMethods(r route.Route) int {
	path, cells := fill(r.Path, m.mine), 0
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "NONSENSE"} {
		if slices.ContainsFunc(m.Routes(), func(other route.Route) bool { return other.Method == method && covers(other.Path, r.Path) }) {
			continue
		}
		cells += 2
		signedIn, signedOut := m.owner.do(method, path, nil), m.client().do(method, path, nil)
		if signedIn.status != 405 || signedIn.Code != protocol.CodeMethodNotAllowed || !slices.Contains(strings.Split(signedIn.header.Get("Allow"), ", "), r.Method) {
			m.t.Errorf("%s by %s: %d %v", r.Path, method, signedIn.status, signedIn.header)
		}
		if signedOut.status != 401 || signedOut.header.Get("Allow") != "" {
			m.t.Errorf("%s by %s without a session: %d", r.Path, method, signedOut.status)
		}
	}
	switch {
	case r.Method == "GET" && sendsEvents(route.OperationAt(m.OpenAPI(), r.Method, r.Path)): // GET may last
		cells++
		if head := m.owner.do("HEAD", path, nil); head.status != 204 && (head.status != 200 || head.header.Get("Content-Type") != "text/event-stream" || len(head.body) > 0) {
			m.t.Errorf("%s: HEAD is %d %v", r.Path, head.status, head.header)
		}
	case r.Method == "GET":
		cells++
		get, head := m.owner.do("GET", path, nil), m.owner.do("HEAD", path, nil)
		for _, response := range []*reply{get, head} {
			response.header.Del("X-Request-Id") // they differ between any two requests
			response.header.Del("RateLimit")
		}
		if get.status != head.status || !maps.EqualFunc(get.header, head.header, slices.Equal) {
			m.t.Errorf("%s: GET %d %v, HEAD %d %v", r.Path, get.status, get.header, head.status, head.header)
		}
	}
	return cells
}

// covers reports whether a pattern matches every path that another pattern matches: a parameter matches any segment.
func covers(pattern, other string) bool {
	return slices.EqualFunc(strings.Split(pattern, "/"), strings.Split(other, "/"), func(a, b string) bool {
		return a == b || strings.HasPrefix(a, "{")
	})
}

// validRequest checks that the example succeeds, so that the refusals above have the reason that was tested.
func (m *matrix) validRequest(r route.Route) int {
	e := examples[nameOf(r)]
	c, of := m.owner, m.mine
	if e.client != nil {
		c = e.client(m)
	}
	if e.identifiers != nil {
		of = e.identifiers(m)
	}
	want := e.success
	if want == 0 {
		want = 200
	}
	if resp := m.ask(c, r, of); resp.status != want {
		m.t.Errorf("%s: %d %s, want %d", nameOf(r), resp.status, resp.body, want)
	}
	return 1
}
