package exhaustion

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

const (
	longMessages = 40 // of the largest size that an import stores as one message
	longest      = 1<<20 - 1024
)

// prepare stores a conversation with the longest messages, and an object of each other kind.
func (a *attack) prepare() {
	a.t.Helper()
	a.known = map[string]string{"email": a.user.Email, "password": sitetest.GoodPassword, "language": "en", "role": "user", "from": "2026-01-01", "to": "2026-12-31"}
	for _, name := range []string{"created_from", "updated_from"} {
		a.known[name], a.known[strings.TrimSuffix(name, "from")+"to"] = "2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z"
	}
	conversation := a.importLong()
	var oldest struct{ Data []protocol.Message }
	a.user.Get(a.t, "/conversations/"+conversation+"/messages?direction=newer", &oldest)
	a.known["conversation_id"] = conversation
	page := a.user.Page(a.t, conversation)
	a.known["branch_id"], a.known["head_message_id"] = page.ActiveBranchID.String(), page.HeadMessageID.String()
	a.known["message_id"] = oldest.Data[0].MessageID.String()
	busy := a.user.NewConversation(a.t)
	live := a.user.Live(a.t, busy, "[[script tokens=100000 interval=1s]]")
	a.known["turn_id"] = live.Turn
	create := func(path, member string, body map[string]any) {
		a.t.Helper()
		a.known[member] = a.user.Do(a.t, "POST", path, body).Text(a.t, http.StatusCreated, member)
	}
	create("/projects", "project_id", map[string]any{"name": "A project"})
	create("/prompts", "prompt_id", map[string]any{"name": "tides", "text": "When do the tides fall?"})
	a.user.Do(a.t, "PUT", "/memory-sources/location/consent", map[string]any{"granted": true}).Want(a.t, http.StatusOK, nil)
	a.user.Do(a.t, "PUT", "/conversations/"+conversation+"/location-context", map[string]any{
		"latitude": 53.3671, "longitude": 7.2063, "accuracy_m": 40, "expires_at": time.Now().Add(time.Hour),
	}).Want(a.t, http.StatusOK, nil)
	share := a.user.Do(a.t, "POST", "/conversations/"+conversation+"/shares", map[string]any{"message_id": a.known["message_id"]})
	a.known["share_id"] = share.Text(a.t, http.StatusCreated, "share_id")
	a.known["token"] = share.Text(a.t, http.StatusCreated, "token")
	a.known["file_id"] = store(a.t, a.user, "tides.txt", "text/plain", []byte("The tides of the north\n"))
	queued := a.user.Do(a.t, "POST", "/chat", sitetest.NewChatBody("later").In(busy).With("if_busy", "queue")).Text(a.t, http.StatusAccepted, "follow_up_id")
	a.knownOf = map[string]map[string]string{
		"GET /shared/{token}/files/{n}":                                           {"token": a.shareFile(a.known["file_id"]), "n": "1"},
		"GET /shared/{token}/artifacts/{n}":                                       {"token": a.shareArtifact(), "n": "1"},
		"POST /conversations/{conversation_id}/follow-ups/{follow_up_id}/promote": {"conversation_id": busy, "follow_up_id": queued},
	}
	a.user.Do(a.t, "PUT", "/memory-sources/files/consent", map[string]any{"granted": true}).Want(a.t, http.StatusOK, nil)
	research := func(question string) string {
		a.t.Helper()
		body := map[string]any{"question": question, "sources": []string{"files"}}
		return a.user.Do(a.t, "POST", "/conversations/"+conversation+"/research-tasks", body).Text(a.t, http.StatusAccepted, "task_id")
	}
	a.known["task_id"] = research("When do the tides fall? [[script tokens=100000 interval=1s]]") // it plans until the test ends
	a.knownOf["GET /research-tasks/{task_id}/sources"] = map[string]string{"task_id": research("When do the tides fall?")}
	a.known["artifact_id"] = a.writeArtifact()
	a.known["approval_id"] = a.askOften()
	create("/files/uploads", "upload_id", map[string]any{"filename": "tides.txt", "media_type": "text/plain", "size": 1, "purpose": "library"})
}

// shareFile shares a conversation with a file and returns the token of the share.
func (a *attack) shareFile(file string) (token string) {
	a.t.Helper()
	conversation := a.user.NewConversation(a.t)
	input := []map[string]string{{"type": "text", "text": "When do the tides fall?"}, {"type": "file", "file_id": file}}
	a.user.Chat(a.t, sitetest.ChatBody{"input": input}.In(conversation)).ReadToEnd(a.t)
	share := a.user.Do(a.t, "POST", "/conversations/"+conversation+"/shares", map[string]any{"file_ids": []string{file}})
	return share.Text(a.t, http.StatusCreated, "token")
}

// writeArtifact stores an artifact with versions of the largest size, whose lines are the same in another order.
func (a *attack) writeArtifact() (id string) {
	a.t.Helper()
	conversation := a.user.NewConversation(a.t)
	a.user.Chat(a.t, sitetest.NewChatBody("[[script tokens=1 artifact=document]]").In(conversation)).ReadToEnd(a.t)
	var written protocol.List[protocol.Artifact]
	a.user.Get(a.t, "/conversations/"+conversation+"/artifacts", &written)
	path := "/artifacts/" + written.Data[0].ArtifactID.String()
	lines := make([]string, longest/8)
	for i := range lines {
		lines[i] = fmt.Sprintf("%07d", i)
	}
	for version := written.Data[0].Version; version < written.Data[0].Version+3; version++ {
		a.random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		body := map[string]string{"content": strings.Join(lines, "\n")}
		a.user.Do(a.t, "PUT", path, body, "If-Match", fmt.Sprintf(`"v%d"`, version)).Want(a.t, http.StatusOK, nil)
	}
	return written.Data[0].ArtifactID.String()
}

// approvalsOfTurn is how many calls of the turn ask for an approval.
const approvalsOfTurn = 20

// askOften starts a turn that waits for as many approvals as a directive can have, and returns one of them.
func (a *attack) askOften() (id string) {
	a.t.Helper()
	directive := "[[script " + strings.Repeat("approval=high:irreversible ", approvalsOfTurn) + "]]"
	a.user.Chat(a.t, sitetest.NewChatBody(directive).In(a.user.NewConversation(a.t)))
	var list protocol.List[protocol.Approval]
	sitetest.Eventually(a.t, "the turn waits for approvals", func() bool {
		a.user.Get(a.t, "/approvals?limit=100", &list)
		return len(list.Data) == approvalsOfTurn
	})
	return list.Data[0].ApprovalID.String()
}

// shareArtifact shares a conversation with a table that the model has written and returns the token of the share.
func (a *attack) shareArtifact() (token string) {
	a.t.Helper()
	conversation := a.user.NewConversation(a.t)
	a.user.Chat(a.t, sitetest.NewChatBody("[[script tokens=1 artifact=table]]").In(conversation)).ReadToEnd(a.t)
	path := "/conversations/" + conversation
	var written protocol.List[protocol.Artifact]
	a.user.Get(a.t, path+"/artifacts", &written)
	return a.user.Do(a.t, "POST", path+"/shares", map[string]any{"artifact_ids": []any{written.Data[0].ArtifactID}}).Text(a.t, http.StatusCreated, "token")
}

// store uploads a file to the library and returns its identifier.
func store(t *testing.T, u *sitetest.User, name, media string, content []byte) (file string) {
	t.Helper()
	body := map[string]any{"filename": name, "media_type": media, "size": len(content), "purpose": "library"}
	path := "/files/uploads/" + u.Do(t, "POST", "/files/uploads", body).Text(t, http.StatusCreated, "upload_id")
	u.Do(t, "PUT", path+"/content", client.Content(content), "Content-Type", media).Want(t, http.StatusOK, nil)
	var state protocol.Upload
	sitetest.Eventually(t, "the file is stored", func() bool {
		u.Get(t, path, &state)
		return state.FileID != nil
	})
	return state.FileID.String()
}

// importLong imports a conversation with the longest messages and returns its identifier.
func (a *attack) importLong() string {
	a.t.Helper()
	mapping, parent := map[string]any{}, ""
	for n := range longMessages {
		id, text := strconv.Itoa(n), fillings[n%len(fillings)]
		node := map[string]any{"id": id, "children": []string{}, "message": map[string]any{
			"id": id, "author": map[string]any{"role": []string{"user", "assistant"}[n%2]}, "create_time": 1_700_000_000 + n,
			"content": map[string]any{"content_type": "text", "parts": []string{strings.Repeat(text, longest/len(text))}},
		}}
		if n > 0 {
			node["parent"] = parent
			mapping[parent].(map[string]any)["children"] = []string{id}
		}
		mapping[id], parent = node, id
	}
	archive, err := json.Marshal([]any{map[string]any{"title": "The tides", "create_time": 1_700_000_000, "mapping": mapping, "current_node": parent}})
	if err != nil {
		a.t.Fatal(err)
	}
	a.known["import_id"] = a.user.Do(a.t, "POST", "/account/imports", json.RawMessage(archive)).Text(a.t, http.StatusAccepted, "import_id")
	path := "/account/imports/" + a.known["import_id"]
	var state protocol.Import
	sitetest.Eventually(a.t, "the import ends", func() bool {
		a.user.Get(a.t, path, &state)
		return state.State != protocol.ImportQueued && state.State != protocol.ImportRunning
	})
	var list struct{ Data []protocol.Conversation }
	a.user.Get(a.t, "/conversations", &list)
	if len(list.Data) != 1 {
		a.t.Fatalf("the import stored %d conversations: %+v", len(list.Data), state)
	}
	return list.Data[0].ConversationID.String()
}

// observer is another account that lists its conversations, one request after the other.
type observer struct {
	user  *sitetest.User
	ended chan struct{}
	done  chan struct{}

	mu   sync.Mutex
	took []time.Duration // guarded by mu
}

func watch(t *testing.T, base string) *observer {
	o := &observer{user: sitetest.NewUser(t, base), ended: make(chan struct{}), done: make(chan struct{})}
	for range 20 {
		o.user.NewConversation(t)
	}
	go func() {
		defer close(o.done)
		for {
			select {
			case <-o.ended:
				return
			case <-t.Context().Done():
				return
			default:
			}
			began := time.Now()
			resp, err := o.user.Request(t.Context(), "GET", "/conversations", nil)
			if err != nil {
				continue // the ledger has it
			}
			if resp.Status != http.StatusOK {
				t.Errorf("the other account got %d %s", resp.Status, resp.Body)
				return
			}
			o.mu.Lock()
			o.took = append(o.took, time.Since(began))
			o.mu.Unlock()
		}
	}()
	return o
}

// median waits until there were count more requests, and returns the median of their durations.
func (o *observer) median(t *testing.T, count int) time.Duration {
	t.Helper()
	o.forget()
	sitetest.Eventually(t, "the other account reads", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.took) >= count
	})
	return o.middle()
}

func (o *observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took = nil
}

func (o *observer) middle() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.took) == 0 {
		return 0
	}
	slices.Sort(o.took)
	return o.took[len(o.took)/2].Round(100 * time.Microsecond)
}

// stop ends the requests and returns the median of their durations since the last call of median.
func (o *observer) stop() time.Duration {
	close(o.ended)
	<-o.done
	return o.middle()
}
