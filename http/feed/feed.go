package feed

import (
	"encoding/json"
	stdhttp "net/http"
	"strings"
	"time"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/sse"
	"turnstone/persistence/feed"
	"turnstone/protocol"
	"turnstone/protocol/wire"
)

// Handlers handle the requests for the account feed.
type Handlers struct {
	Hub     *Hub
	Store   Store
	Keys    *auth.Keys
	Streams *exchange.Streams
}

func description() string {
	var b strings.Builder
	b.WriteString("Streams an item for every change of a resource of the account, whichever device or job made it. An item names the resource; load what you display again. " +
		"Without a cursor the stream starts with `feed.started`, whose `id` is a cursor, and continues with the changes from then on: open it first, then load. " +
		"To resume, send the `id` of the last event in Last-Event-ID or `after`; the header takes precedence. Items are kept for 7 days. " +
		"If items after the cursor are gone, the stream starts with `feed.reset`: load everything again. " +
		"An item is never skipped otherwise, but several changes of one resource may be reported as one, and an item may be repeated. " +
		"Changes of temporary conversations are reported too; lists do not contain these conversations. Kinds of resources:\n")
	for _, kind := range protocol.FeedKinds {
		b.WriteString("\n- `" + kind.Kind + "`: " + kind.Doc)
	}
	return b.String()
}

type eventsInput struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"1024" doc:"The id of the last event that was received. Takes precedence over after."`
	After       string `query:"after" maxLength:"1024" doc:"The id of the last event that was received. Absent: start with what happens from now on."`
}

// getEvents streams the feed of the caller's account. It reads the store once before the first byte, so while the store is
// away, the response is 503.
func (h *Handlers) getEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, in *eventsInput) error {
	account := exchange.CallerOf(r.Context()).AccountID
	after, err := h.position(account, in)
	if err != nil {
		return err
	}
	if h.Hub.Away() {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The server serves no feeds now. Connect again.", RetryAfter: 1}
	}
	if err := h.Streams.Acquire(account); err != nil {
		return err
	}
	defer h.Streams.Release(r.Context(), account)
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	page, err := h.Store.Read(bounded, account, after, 0)
	if err != nil {
		return err
	}
	var first []feed.Item
	switch {
	case after == feed.Position{}:
		first = []feed.Item{started(page.End)}
	case page.Gap:
		first = []feed.Item{reset(page.End)}
	}
	if len(first) > 0 {
		after = page.End
	}
	encode := h.encoder(account)
	head, err := encode(nil, first)
	if err != nil {
		return err
	}
	reader := h.Hub.Follow(account, after, page.End, encode)
	return h.Streams.Serve(w, r, &sse.Stream{
		First: head, Reader: reader, Render: func(b, events []byte) []byte { return append(b, events...) },
	})
}

func started(at feed.Position) feed.Item { return ownItem(protocol.FeedStarted, at) }

func reset(at feed.Position) feed.Item { return ownItem(protocol.FeedReset, at) }

func ownItem(kind string, at feed.Position) feed.Item {
	return feed.Item{Position: at, FeedItem: protocol.FeedItem{Type: kind, At: time.Now()}}
}

// position returns the position that a client sent; the zero position if it sent none.
func (h *Handlers) position(account protocol.AccountID, in *eventsInput) (at feed.Position, err error) {
	text, field := in.After, "query.after"
	if in.LastEventID != "" {
		text, field = in.LastEventID, "header.Last-Event-ID"
	}
	if text == "" {
		return at, nil
	}
	plain, opened := h.Keys.OpenCursor(text, scope(account))
	if !opened || json.Unmarshal(plain, &at) != nil || at.Transaction == 0 {
		return at, protocol.Invalid(field, "is not a cursor of this feed")
	}
	return at, nil
}

func scope(account protocol.AccountID) []byte { return append(account[:], "feed"...) }

// encoder returns the Encoder of an account's events. The cursor of an event is its sealed position.
func (h *Handlers) encoder(account protocol.AccountID) Encoder {
	return func(b []byte, items []feed.Item) ([]byte, error) {
		for i := range items {
			plain, err := json.Marshal(items[i].Position)
			if err != nil {
				return nil, err
			}
			data, err := wire.Marshal(&items[i].FeedItem)
			if err != nil {
				return nil, err
			}
			b = append(b, "id: "...)
			b = append(b, h.Keys.SealCursor(plain, scope(account))...)
			b = append(b, "\nevent: "...)
			b = append(b, items[i].Type...)
			b = append(b, "\ndata: "...)
			b = append(b, data...)
			b = append(b, "\n\n"...)
		}
		return b, nil
	}
}
