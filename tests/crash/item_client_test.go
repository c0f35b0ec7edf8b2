package crash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"turnstone/protocol"
	api "turnstone/protocol/client"
	"turnstone/protocol/clock"
)

const largestFile = 400 // lines

// keyed sends a request with a key that creates something, until its outcome is known: sometimes several at once, each of which
// is repeated. It decodes a response into made, and returns the identifier of what was created; "": there is none.
func (c *client) keyed(o operation, path string, body, made any, idOf func() string, headers ...string) (id string) {
	var all sync.WaitGroup
	var mu sync.Mutex // of made and id
	for range 1 + c.random.IntN(3) {
		all.Go(func() {
			for range attempts {
				one := o
				response := c.send(&one, http.MethodPost, path, body, slices.Concat(headers, []string{"Idempotency-Key", one.Key})...)
				if one.acknowledged() {
					mu.Lock()
					if err := json.Unmarshal(response.Body, made); err != nil {
						c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
					}
					one.ID = idOf()
					id = one.ID
					mu.Unlock()
				}
				c.history.add(one)
				if !one.repeatable() || clock.Sleep(c.ctx, retryPause) != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return id
}

// create creates a conversation.
func (c *client) create() {
	o := operation{Kind: opCreate, Key: c.token("K"), Text: c.token("C")}
	var made protocol.Conversation
	c.keyed(o, "/conversations", map[string]string{"title": o.Text}, &made, func() string { return made.ConversationID.String() })
}

// share shares a conversation, and sometimes ends the share.
func (c *client) share() {
	o := operation{Kind: opShare, Conversation: c.conversation(), Key: c.token("K"), Text: c.token("H")}
	revokes := c.random.IntN(3) == 0
	var made protocol.CreatedShare
	token := ""
	c.keyed(o, "/conversations/"+o.Conversation+"/shares", map[string]string{"title": o.Text}, &made, func() string {
		if token != "" && made.Token != token {
			c.notes.violation(notIdempotent, "%s was shared with two tokens", o.Text)
		}
		token = made.Token
		return made.ShareID.String()
	})
	if token != "" && revokes {
		c.revoke(o, made.ShareID.String(), token)
	}
}

// revoke ends a share, until the outcome is known. From then on nobody can read it.
func (c *client) revoke(shared operation, share, token string) {
	for tried := range attempts {
		one := operation{Kind: opRevoke, Key: shared.Key, Text: shared.Text, ID: share}
		allowed := 0
		if tried > 0 { // an attempt without a response may have ended it
			allowed = http.StatusNotFound
		}
		c.sendAllowing(&one, allowed, http.MethodDelete, "/shares/"+share, nil)
		if one.Status == http.StatusNotFound && tried > 0 {
			one.Status = http.StatusNoContent
		}
		c.history.add(one)
		if one.acknowledged() {
			c.expectGone("/shared/" + token)
			return
		}
		if !one.repeatable() || clock.Sleep(c.ctx, retryPause) != nil {
			return
		}
	}
}

// expectGone reads what must not be readable any more.
func (c *client) expectGone(path string) {
	response := c.sendAllowing(&operation{}, http.StatusNotFound, http.MethodGet, path, nil)
	if response != nil && response.Status == http.StatusOK {
		c.notes.violation(stillReadable, "%s, after its end was acknowledged: %s", response.Request, response.Body)
	}
}

// storeFile stores a small file. A content whose outcome is unknown is sent again from its first byte.
func (c *client) storeFile() {
	session := operation{Kind: opUpload, Key: c.token("K"), Text: c.token("F")}
	content := strings.Repeat(session.Text+"\n", 1+c.random.IntN(largestFile))
	sum := sha256.Sum256([]byte(content))
	var upload protocol.Upload
	body := map[string]any{"filename": session.Text + ".txt", "media_type": "text/plain", "size": len(content), "purpose": "library"}
	if c.keyed(session, "/files/uploads", body, &upload, func() string { return upload.UploadID.String() }) == "" {
		return
	}
	for range attempts {
		one := operation{Kind: opFile, Text: session.Text, SHA256: hex.EncodeToString(sum[:])}
		response := c.send(&one, http.MethodPut, upload.Path()+"/content", api.Content(content), "Content-Type", "text/plain")
		if one.Status == http.StatusConflict || one.Status == http.StatusAccepted { // another attempt still sends it, has stored it, or it is being scanned
			response = c.send(&one, http.MethodGet, upload.Path(), nil)
		}
		if one.acknowledged() {
			if err := json.Unmarshal(response.Body, &upload); err != nil {
				c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
				return
			}
		}
		switch {
		case one.acknowledged() && upload.State == protocol.UploadReady && upload.FileID != nil:
			one.ID = upload.FileID.String()
			c.history.add(one)
			return
		case one.acknowledged() && upload.State == protocol.UploadReady:
			c.notes.violation(badResponse, "%s: a stored upload names no file: %s", response.Request, response.Body)
			return
		}
		one.Status = 0 // it may become a file
		c.history.add(one)
		if clock.Sleep(c.ctx, retryPause) != nil {
			return
		}
	}
}

// count returns the number of acknowledged operations of a kind so far; repeats are not counted.
func (h *history) count(kind string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.operations {
		if o := &h.operations[i]; o.Kind == kind && o.acknowledged() && !o.Replayed {
			n++
		}
	}
	return n
}
