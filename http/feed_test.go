package http

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/protocol"
	frames "turnstone/protocol/client"
	"turnstone/protocol/verify"
)

// feedWorld is a Server that listens and does its background work.
type feedWorld struct {
	*world
	service            *httptest.Server
	draining, isolated atomic.Bool
}

func newFeedWorld(t *testing.T) *feedWorld {
	t.Helper()
	return (&feedWorld{}).start(t, newWorld)
}

// start makes the Server of the world listen.
func (w *feedWorld) start(t *testing.T, open func(*testing.T, ...func(*testConfig)) *world) *feedWorld {
	t.Helper()
	w.world = open(t, func(c *testConfig) { c.Draining, c.Isolated = w.draining.Load, w.isolated.Load })
	w.service = httptest.NewServer(w.world)
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		stop()
		background.Wait()
		w.CloseStreams(ctx)
		w.service.Close()
	})
	return w
}

// feedStream is an open feed.
type feedStream struct {
	verify.Feed
	t      *testing.T
	body   io.ReadCloser
	frames *frames.FrameReader
	from   time.Time // when it was opened; zero if it was opened with a cursor
}

// feed opens the feed of a client after a cursor; an empty one stands for none.
func (w *feedWorld) feed(c *client, cursor string) *feedStream {
	w.t.Helper()
	var from time.Time
	if cursor == "" {
		from = time.Now()
	}
	response := w.open(c, cursor)
	if response.StatusCode != stdhttp.StatusOK {
		body, _ := io.ReadAll(response.Body)
		w.t.Fatalf("GET /events: %d %s", response.StatusCode, body)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	return &feedStream{Feed: verify.Feed{Cursor: cursor}, t: w.t, body: response.Body, frames: frames.NewFrameReader(response.Body), from: from}
}

func (w *feedWorld) open(c *client, cursor string) *stdhttp.Response {
	w.t.Helper()
	request, err := stdhttp.NewRequestWithContext(w.t.Context(), "GET", w.service.URL+"/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Host = w.BaseURL.Host
	for name, value := range c.cookies {
		request.AddCookie(&stdhttp.Cookie{Name: name, Value: value})
	}
	if cursor != "" {
		request.Header.Set("Last-Event-ID", cursor)
	}
	response, err := w.service.Client().Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

// next returns the next item.
func (s *feedStream) next() protocol.FeedItem {
	s.t.Helper()
	item, err := s.read()
	if err != nil {
		s.t.Fatalf("the feed ended: %v", err)
	}
	return item
}

func (s *feedStream) read() (item protocol.FeedItem, err error) {
	s.t.Helper()
	frame, err := s.frames.Next()
	if err != nil {
		return item, err
	}
	item, err = s.Next(string(frame.ID), string(frame.Event), string(frame.Data))
	if err != nil {
		s.t.Fatal(err)
	}
	return item, nil
}

// want reads the next item and fails unless it has this type and identifier. A feed without a cursor may begin with changes
// from shortly before it was opened, which want passes over.
func (s *feedStream) want(kind, id string) protocol.FeedItem {
	s.t.Helper()
	item := s.next()
	for item.At.Before(s.from) && item.Type != protocol.FeedStarted && (item.Type != kind || item.ID != id) {
		item = s.next()
	}
	if item.Type != kind || item.ID != id {
		s.t.Fatalf("the feed has %+v, want %s %s", item, kind, id)
	}
	return item
}

func (c *client) newConversation() string {
	c.t.Helper()
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(c.t, &made)
	return made.ConversationID.String()
}

func (c *client) setTitle(conversation, title string) {
	c.t.Helper()
	c.expect(200, "PUT", "/conversations/"+conversation+"/title", route.Object{"title": title})
}

// TestTheFeedReportsWhatAnotherDeviceChanges starts without a cursor: the first event is a cursor, and what follows is
// what changes from then on.
func TestTheFeedReportsWhatAnotherDeviceChanges(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	laptop := w.client().register("ann@example.com")
	before := laptop.newConversation()
	feed := w.feed(laptop, "")
	feed.want(protocol.FeedStarted, "")
	phone := w.client().login("ann@example.com")
	id := phone.newConversation()
	item := feed.want("conversation.changed", id)
	if item.ConversationID.String() != id || item.Version == nil || *item.Version != 1 || time.Since(item.At).Abs() > time.Hour {
		t.Errorf("the item of a new conversation is %+v", item)
	}
	phone.expect(200, "PUT", "/conversations/"+before+"/draft", route.Object{"content": "a draft"})
	feed.want("draft.changed", before)
	phone.setTitle(before, "A title")
	feed.want("conversation.changed", before)
	phone.expect(204, "DELETE", "/conversations/"+before, nil)
	feed.want("conversation.deleted", before)
}

// TestAFeedReportsWhatAnotherProcessChanges opens the feed on one Server and changes the data through another.
func TestAFeedReportsWhatAnotherProcessChanges(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	other := worldOn(t, w.database)
	id := other.client().login("ann@example.com").newConversation()
	feed.want("conversation.changed", id)
}

func TestAFeedResumesAfterTheLastEventThatItsClientHas(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	first := ann.newConversation()
	feed.want("conversation.changed", first)
	_ = feed.body.Close()
	second := ann.newConversation()
	ann.setTitle(second, "renamed while the client was away")
	third := ann.newConversation()
	// The feed reports a change once every transaction that began before it has ended, those of other databases of the server as
	// well. When a reader has the last of the changes, all of them are reported together.
	for until := w.feed(ann, feed.Cursor); until.next().ID != third; {
	}
	again := w.feed(ann, feed.Cursor)
	if item := again.want("conversation.changed", second); *item.Version != 2 {
		t.Errorf("two changes of one conversation are reported with version %d, want the last, 2", *item.Version)
	}
	again.want("conversation.changed", third)
	fourth := ann.newConversation()
	again.want("conversation.changed", fourth)
	// The same cursor gives the same items again, in the query as in the header.
	response := ann.expect(200, "GET", "/events?after="+feed.Cursor, nil)
	if body := string(response.body); !strings.Contains(body, "retry: 2000\n") {
		t.Errorf("the stream starts with %q", body)
	}
}

func TestACursorOfAnotherAccountOrOfAListIsInvalid(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann, bob := w.client().register("ann@example.com"), w.client().register("bob@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	ann.newConversation()
	ann.newConversation()
	var page protocol.List[protocol.Conversation]
	ann.expect(200, "GET", "/conversations?limit=1", nil).into(t, &page)
	for name, request := range map[string]struct {
		by     *client
		cursor string
	}{"another account": {bob, feed.Cursor}, "a list": {ann, *page.NextCursor}, "no cursor": {ann, "12"}} {
		for _, send := range []func() *reply{
			func() *reply { return request.by.do("GET", "/events?after="+request.cursor, nil) },
			func() *reply { return request.by.do("GET", "/events", nil, "Last-Event-ID", request.cursor) },
		} {
			if got := send(); got.status != 422 || len(got.Errors) != 1 {
				t.Errorf("the cursor of %s: %d %s, want 422", name, got.status, got.body)
			}
		}
	}
}

func TestAFeedShowsNothingOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann, bob := w.client().register("ann@example.com"), w.client().register("bob@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	theirs := bob.newConversation()
	bob.setTitle(theirs, "canary-of-bob")
	mine := ann.newConversation()
	feed.want("conversation.changed", mine)
}

func TestACursorOlderThanTheRetentionResetsTheFeed(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	_ = feed.body.Close()
	ann.newConversation()
	w.database.Admin(t, `update feed_items set at = at - interval '8 days'`)
	if err := w.DB.Feed.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := w.feed(ann, feed.Cursor)
	again.want(protocol.FeedReset, "")
	id := ann.newConversation()
	again.want("conversation.changed", id)
	_ = again.body.Close()
	w.feed(ann, again.Cursor) // the new cursor is valid
}

// TestTheFeedOfARevokedSessionEnds revokes the session on another Server, so that only the notification or the recheck
// can end the stream.
func TestTheFeedOfARevokedSessionEnds(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	laptop := w.client().register("ann@example.com")
	feed := w.feed(laptop, "")
	feed.want(protocol.FeedStarted, "")
	phone := worldOn(t, w.database).client().login("ann@example.com")
	phone.expect(204, "DELETE", "/auth/sessions", nil)
	for {
		if _, err := feed.read(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if response := w.open(laptop, feed.Cursor); response.StatusCode != stdhttp.StatusUnauthorized {
		t.Errorf("the feed of a revoked session: %d, want 401", response.StatusCode)
	}
}

func TestADrainingNodeSendsItsFeedsToAnother(t *testing.T) {
	t.Parallel()
	testFeedsAreSentAway(t, func(w *feedWorld) { w.draining.Store(true) })
}

// A node without Postgres learns of no change, while other nodes may.
func TestAnIsolatedNodeSendsItsFeedsToAnother(t *testing.T) {
	t.Parallel()
	testFeedsAreSentAway(t, func(w *feedWorld) { w.isolated.Store(true) })
}

func testFeedsAreSentAway(t *testing.T, begin func(*feedWorld)) {
	t.Helper()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	begin(w)
	if item, err := feed.read(); !errors.Is(err, io.EOF) {
		t.Fatalf("the feed continues: %+v, %v", item, err)
	}
	if retry := feed.frames.Retry(); retry >= time.Second {
		t.Errorf("the stream asks for a reconnection after %s, want less than a second", retry)
	}
	if response := w.open(ann, feed.Cursor); response.StatusCode != stdhttp.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a new feed: %d, want 503 with Retry-After", response.StatusCode)
	}
}

func TestFeedsCountAsOpenStreamsOfTheAccount(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	for range maxStreams {
		if err := w.streams.Acquire(ann.account.AccountID); err != nil {
			t.Fatal(err)
		}
	}
	if response := w.open(ann, ""); response.StatusCode != stdhttp.StatusTooManyRequests {
		t.Errorf("one feed too many: %d, want 429", response.StatusCode)
	}
	w.streams.Slots.Release(ann.account.AccountID)
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	if response := w.open(ann, ""); response.StatusCode != stdhttp.StatusTooManyRequests {
		t.Errorf("while a feed has the last slot: %d, want 429", response.StatusCode)
	}
}

func TestTheFeedIsUnavailableWithoutPostgres(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	w.DB.Close()
	if response := w.open(ann, feed.Cursor); response.StatusCode != stdhttp.StatusServiceUnavailable {
		t.Errorf("without Postgres: %d, want 503", response.StatusCode)
	}
}

// TestAReaderFarBehindGetsEverythingInBoundedMemory has 100,000 items about different resources behind its cursor.
func TestAReaderFarBehindGetsEverythingInBoundedMemory(t *testing.T) {
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	_ = feed.body.Close()
	const items, mostMemory = 100_000, 32 << 20
	w.database.Admin(t, `insert into feed_items (account_id, kind, deleted, prefix, id, version)
		select $1, 'conversation', false, 'conv', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, n from generate_series(1, $2::int) n`,
		ann.account.AccountID, items)
	again := w.feed(ann, feed.Cursor)
	before := heap()
	var most uint64
	for n := int64(1); n <= items; n++ {
		if item := again.next(); *item.Version != n {
			t.Fatalf("item %d is about version %d", n, *item.Version)
		}
		if n%10_000 == 0 {
			most = max(most, heap())
		}
	}
	if most > before+mostMemory {
		t.Errorf("a reader of %d items takes %d MiB", items, (most-before)>>20)
	}
}

// TestASlowFeedDelaysNoOther has a client that reads nothing, with more items than its connection buffers.
func TestASlowFeedDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	slow, fast := w.feed(ann, ""), w.feed(ann, "")
	fast.want(protocol.FeedStarted, "")
	const items = 60_000
	w.database.Admin(t, `insert into feed_items (account_id, kind, deleted, prefix, id, version)
		select $1, 'conversation', false, 'conv', gen_random_uuid(), n from generate_series(1, $2::int) n`, ann.account.AccountID, items)
	for n := int64(1); n <= items; n++ {
		if item := fast.next(); *item.Version != n {
			t.Fatalf("item %d is about version %d", n, *item.Version)
		}
	}
	id := ann.newConversation()
	fast.want("conversation.changed", id)
	slow.want(protocol.FeedStarted, "") // it continues where it stopped
	if item := slow.next(); *item.Version != 1 {
		t.Errorf("the slow reader continues with version %d, want 1", *item.Version)
	}
}

// TestNoChangeIsLostToAReaderThatReconnectsAllTheTime closes and resumes a feed while conversations change.
func TestNoChangeIsLostToAReaderThatReconnectsAllTheTime(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	ann := w.client().register("ann@example.com")
	feed := w.feed(ann, "")
	feed.want(protocol.FeedStarted, "")
	const changes = 40
	made := make(chan []string, 1)
	go func() {
		var ids []string
		writer := ann.twin()
		for range changes {
			var made protocol.Conversation
			_ = json.Unmarshal(writer.do("POST", "/conversations", route.Object{}).body, &made) // the test compares the identifiers
			ids = append(ids, made.ConversationID.String())
		}
		made <- ids
	}()
	var seen []string
	for len(seen) < changes {
		item := feed.next()
		seen = append(seen, item.ID)
		if len(seen)%3 == 0 {
			_ = feed.body.Close()
			feed = w.feed(ann, feed.Cursor)
		}
	}
	if ids := <-made; !slices.Equal(seen, ids) {
		t.Errorf("the feed has\n%v\nwant\n%v", seen, ids)
	}
}
