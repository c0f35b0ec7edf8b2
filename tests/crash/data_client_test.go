package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	api "turnstone/protocol/client"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

const (
	dataAccounts   = 2
	exportedEach   = 3  // conversations of an export
	exportedLength = 12 // messages of each of them
	victimsEach    = 4  // accounts that are erased in a round
	victimsPause   = 12 * time.Second
)

// dataClient imports exports, makes branches and forks of what was imported, and follows the feed of its account.
type dataClient struct {
	*client
	imported map[string][]protocol.Message // conversations, as they were when the import ended
	texts    []string                      // of exports that were imported

	stop    func() // ends the feed
	feed    verify.Feed
	started chan struct{} // closed when the feed has started

	mu       sync.Mutex
	reported map[string]bool // guarded by mu: the kind and the identifier of what the feed reported
	changed  chan struct{}   // guarded by mu: closed when the feed reports something
}

// dataClients returns the clients of the accounts with imports of a round, without what work sets.
func (a *run) dataClients(round int) (all []*dataClient) {
	for n, account := range a.data {
		c := &client{name: fmt.Sprintf("%d.data.%d", round, n), user: account.users[0], account: account, notes: a.notes, clock: a.clock}
		all = append(all, &dataClient{client: c, imported: map[string][]protocol.Message{}, started: make(chan struct{}), reported: map[string]bool{}, changed: make(chan struct{})})
	}
	return all
}

// run works until the round ends. The feed is followed until endFeed.
func (c *dataClient) run() {
	following, stop := context.WithCancel(context.WithoutCancel(c.ctx))
	ended := make(chan struct{})
	c.stop = func() { stop(); <-ended }
	go func() {
		defer close(ended)
		c.follow(following)
	}()
	select {
	case <-c.started: // what changed before is not reported
	case <-c.ctx.Done():
		return
	}
	for c.ctx.Err() == nil {
		switch {
		case len(c.imported) == 0 || c.random.IntN(8) == 0:
			c.importExport()
		default:
			c.branch()
		}
		_ = clock.Sleep(c.ctx, queuePause) // the loop checks ctx
	}
}

// exportOf returns an export of another service with conversations whose titles begin with text.
func exportOf(text string) (export api.Content, titles []string) {
	type object = map[string]any
	var all []any
	for n := range exportedEach {
		title := fmt.Sprintf("%s %d", text, n)
		titles = append(titles, title)
		mapping, parent := object{}, any(nil)
		for m := range exportedLength {
			id, role := fmt.Sprintf("%s-%d-%d", text, n, m), [2]string{"user", "assistant"}[m%2]
			mapping[id] = object{"id": id, "parent": parent, "message": object{
				"id": id, "author": object{"role": role}, "content": object{"content_type": "text", "parts": []string{fmt.Sprintf("message %d", m)}},
			}}
			parent = id
		}
		all = append(all, object{"id": title, "title": title, "create_time": 1764000000, "current_node": parent, "mapping": mapping})
	}
	export, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return export, titles
}

// importExport imports an export until the outcome is known, and waits until the import ends. Some exports are imported again.
func (c *dataClient) importExport() {
	o := operation{Kind: opImport, Key: c.token("K"), Text: c.token("I")}
	if n := len(c.texts); n > 0 && c.random.IntN(3) == 0 {
		o.Text = c.texts[c.random.IntN(n)]
	}
	export, _ := exportOf(o.Text)
	var made protocol.Import
	id := c.keyed(o, "/account/imports", export, &made, func() string { return made.ImportID.String() }, "Content-Type", "application/json")
	for id != "" && clock.Sleep(c.ctx, queuePause) == nil {
		look := operation{Kind: opLook}
		response := c.send(&look, http.MethodGet, "/account/imports/"+id, nil)
		if !look.acknowledged() {
			continue
		}
		if err := json.Unmarshal(response.Body, &made); err != nil {
			c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
			return
		}
		if made.State.Terminal() {
			if made.State == protocol.ImportCompleted { // the checker looks at the others
				c.texts = append(c.texts, o.Text)
				c.find(o.Text)
			}
			return
		}
	}
}

// find notes the conversations of an import that has ended.
func (c *dataClient) find(text string) {
	look := operation{Kind: opLook}
	response := c.send(&look, http.MethodGet, "/conversations?limit=100", nil)
	if !look.acknowledged() {
		return
	}
	var page protocol.List[protocol.Conversation]
	if err := json.Unmarshal(response.Body, &page); err != nil {
		c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
	}
	for i := range page.Data {
		if one := &page.Data[i]; strings.HasPrefix(one.Title, text) {
			c.readImported(one.ConversationID.String())
			c.history.add(operation{Kind: opImported, Client: c.name, Text: one.Title, ID: one.ConversationID.String(), Status: http.StatusOK})
		}
	}
}

// readImported reads the messages of a conversation, unless it has been read: then it may have branches.
func (c *dataClient) readImported(conversation string) {
	if c.imported[conversation] != nil {
		return
	}
	look := operation{Kind: opLook}
	response := c.send(&look, http.MethodGet, "/conversations/"+conversation+"/messages?limit=100", nil)
	if !look.acknowledged() {
		return
	}
	var page protocol.List[protocol.Message]
	if err := json.Unmarshal(response.Body, &page); err != nil || len(page.Data) != exportedLength {
		c.notes.violation(notWhole, "%s has %d messages: %v", conversation, len(page.Data), err)
		return
	}
	c.imported[conversation] = page.Data
}

// branch makes a branch or a fork at a message of an imported conversation.
func (c *dataClient) branch() {
	conversations := slices.Sorted(maps.Keys(c.imported))
	conversation := conversations[c.random.IntN(len(conversations))]
	message := &c.imported[conversation][c.random.IntN(exportedLength)]
	o := operation{Kind: opBranch, Conversation: conversation, Key: c.token("K"), Text: c.token("B")}
	mode := "edit"
	switch {
	case c.random.IntN(2) == 0:
		o.Kind, o.Text, o.Sequence, mode = opFork, c.token("F"), positionOf(message), protocol.BranchFork
	case message.Role == protocol.RoleAssistant:
		mode = "regenerate"
	}
	var made struct {
		BranchID       protocol.BranchID       `json:"branch_id"`
		ConversationID protocol.ConversationID `json:"conversation_id"`
	}
	body := map[string]string{"message_id": message.MessageID.String(), "mode": mode, "name": o.Text}
	c.keyed(o, "/conversations/"+conversation+"/branches", body, &made, func() string {
		if o.Kind == opFork {
			return made.ConversationID.String()
		}
		return made.BranchID.String()
	})
}

// positionOf returns the position of a message of exportOf in its conversation, from 1.
func positionOf(message *protocol.Message) (position int64) {
	if len(message.Parts) == 1 {
		_, _ = fmt.Sscanf(message.Parts[0].Text, "message %d", &position) // another text would be found as a wrong length
	}
	return position + 1
}

// follow reads the feed of the account over any number of connections, until ctx ends.
func (c *dataClient) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.readFeed(ctx); err != nil {
			c.notes.violation(badResponse, "the account feed: %v", err)
			return
		}
		_ = clock.Sleep(ctx, retryPause) // the loop checks ctx
	}
}

// readFeed reads the feed on one connection. It returns an error only for a violation.
func (c *dataClient) readFeed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	path, hadCursor := "/events", c.feed.Cursor != ""
	if hadCursor {
		path += "?after=" + c.feed.Cursor
	}
	response, err := c.user.Open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil // the service is being restarted
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil // as above
	}
	frames := api.NewFrameReader(response.Body)
	for {
		frame, err := frames.Next()
		if err != nil {
			return nil // the connection has ended
		}
		item, err := c.feed.Next(string(frame.ID), string(frame.Event), string(frame.Data))
		switch {
		case err != nil:
			return err
		case !hadCursor:
			hadCursor = true
			close(c.started)
			continue
		case item.Type == protocol.FeedReset:
			return fmt.Errorf("the cursor is not known any more: %s", frame.Data)
		}
		c.mu.Lock()
		c.reported[item.Kind()+" "+item.ID] = true
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

// endFeed makes a last change after the faults, waits until the feed has reported it, and compares the feed with what was
// acknowledged: the feed is in order.
func (c *dataClient) endFeed(h *history) {
	defer c.stop()
	select {
	case <-c.started:
	default:
		return // nothing was written
	}
	last := operation{Kind: opLook}
	response := c.send(&last, http.MethodPost, "/conversations", map[string]string{"title": "the last one"}, "Idempotency-Key", c.name)
	var made protocol.Conversation
	if !last.acknowledged() || json.Unmarshal(response.Body, &made) != nil {
		c.notes.violation(badResponse, "without faults: %d %s", last.Status, last.Code)
		return
	}
	guard := time.NewTimer(sitetest.HangGuard)
	defer guard.Stop()
	for {
		c.mu.Lock()
		done, changed := c.reported["conversation "+made.ConversationID.String()], c.changed
		c.mu.Unlock()
		if done {
			break
		}
		select {
		case <-changed:
		case <-guard.C:
			c.notes.violation(lost, "the account feed does not report %s", made.ConversationID)
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range unreported(h.all(), c.name, c.reported) {
		c.notes.violation(lost, "the account feed did not report the %s", what)
	}
}

// unreported returns what a client got acknowledged, or saw as imported, and the feed of its account did not report.
func unreported(operations []operation, client string, reported map[string]bool) (missing []string) {
	kinds := map[string]string{opImported: "conversation ", opFork: "conversation ", opBranch: "branch "}
	for _, o := range operations {
		if kind := kinds[o.Kind]; kind != "" && o.Client == client && o.acknowledged() && !reported[kind+o.ID] {
			missing = append(missing, kind+o.ID)
		}
	}
	return missing
}

// newVictims creates the accounts of a round that are to be erased.
func (a *run) newVictims() (all []*accountState) {
	for range victimsEach {
		victim := a.newAccount(1)
		victim.conversations = []string{victim.users[0].NewConversation(a.t)}
		all = append(all, victim)
	}
	return all
}

// eraseClient erases accounts.
type eraseClient struct {
	*client
	victims []*accountState
}

// run erases one account after the other, until the round ends.
func (c *eraseClient) run() {
	for _, victim := range c.victims {
		if clock.Sleep(c.ctx, time.Duration(c.random.Int64N(int64(victimsPause)))) != nil {
			return
		}
		c.user = victim.users[0]
		c.erase(victim)
	}
}

// erase erases an account until the outcome is known. From then on nobody is signed in to it.
func (c *eraseClient) erase(victim *accountState) {
	confirmation := ""
	for range attempts {
		one := operation{Kind: opErase, Text: victim.id.String()}
		allowed := 0
		if confirmation != "" { // an attempt without a response may have erased it
			allowed = http.StatusUnauthorized
		}
		response := c.sendAllowing(&one, allowed, http.MethodDelete, "/account", nil, "X-Confirm", confirmation)
		switch {
		case one.Code == string(protocol.CodeConfirmation):
			var current struct {
				Confirmation struct {
					Token string `json:"token"`
				} `json:"confirmation"`
			}
			if err := json.Unmarshal(response.Problem().Current, &current); err != nil {
				c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
				return
			}
			confirmation = current.Confirmation.Token
			continue // nothing was asked for yet
		case one.Status == http.StatusUnauthorized:
			one.Status = http.StatusAccepted
		}
		if confirmation == "" {
			one.Status, one.Unknown = http.StatusServiceUnavailable, false
		}
		c.history.add(one)
		if one.acknowledged() {
			c.expectSignedOut()
			return
		}
		if !one.repeatable() || clock.Sleep(c.ctx, retryPause) != nil {
			return
		}
	}
}

// expectSignedOut reads the account that was erased.
func (c *eraseClient) expectSignedOut() {
	response := c.sendAllowing(&operation{}, http.StatusUnauthorized, http.MethodGet, "/account/settings", nil)
	if response != nil && response.Status == http.StatusOK {
		c.notes.violation(stillReadable, "%s, after the erasure was acknowledged: %s", response.Request, response.Body)
	}
}
