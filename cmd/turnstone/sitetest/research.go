package sitetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/verify"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

// reconnectPause is how long a reader of a task waits before it connects again. Many of them may wait for the service.
const reconnectPause = 5 * PollEvery

// ResearchBody is the body that starts a research task.
type ResearchBody map[string]any

// Research starts a research task in a new conversation.
func (u *User) Research(t *testing.T, body ResearchBody) *protocol.ResearchTask {
	t.Helper()
	var task protocol.ResearchTask
	u.Do(t, http.MethodPost, "/conversations/"+u.NewConversation(t)+"/research-tasks", body).Want(t, http.StatusAccepted, &task)
	return &task
}

// FollowResearch reads the events of a task up to its end, through any number of broken connections. bases are the addresses at
// which the service may be reached; none: that of the user. seen may be nil.
func (u *User) FollowResearch(ctx context.Context, task string, seen func(verify.Event), bases ...string) error {
	readers := []*client.Client{u.API}
	for _, base := range bases {
		reader, err := client.New(base, client.Options{HTTP: u.HTTP})
		if err != nil {
			return err
		}
		readers = append(readers, reader)
	}
	var err error
	after, n := int64(0), 0
	waited := clocktest.Poll(ctx, reconnectPause, func() (ended bool) {
		ended, err = u.readResearch(ctx, readers[n%len(readers)], task, &after, seen)
		n++
		return ended || err != nil
	})
	if waited != nil {
		return fmt.Errorf("following %s after event %d: %w", task, after, waited)
	}
	return err
}

// readResearch reads the events of one connection. err is a violation of the contract.
func (u *User) readResearch(ctx context.Context, from *client.Client, task string, after *int64, seen func(verify.Event)) (ended bool, err error) {
	open := request(http.MethodGet, "/research-tasks/"+task+"/events", nil, []string{"Last-Event-ID", strconv.FormatInt(*after, 10)})
	stream, refused, err := from.OpenStream(ctx, open, *after)
	switch {
	case stream == nil && refused != nil && refused.Status != http.StatusServiceUnavailable:
		return false, fmt.Errorf("following %s after event %d: %d %s", task, *after, refused.Status, refused.Body)
	case stream == nil:
		return false, nil // the service is away
	}
	defer stream.Close()
	for {
		e, err := stream.Next()
		if errors.Is(err, ErrBroken) {
			return false, err
		}
		if err != nil {
			return false, nil // the connection was cut
		}
		*after = e.Sequence
		if err := u.Witness.Saw(task, e.Sequence, e.Data, time.Now()); err != nil {
			return false, err
		}
		if seen != nil {
			seen(e)
		}
		if e.Type == "task.finished" {
			return true, nil
		}
	}
}

// CheckResearch reads the log of a task that has ended, and compares it with what readers saw and with the task. cancelled means that a cancel
// was acknowledged.
func (u *User) CheckResearch(t *testing.T, id string, cancelled bool) (*verify.Research, *protocol.ResearchTask) {
	t.Helper()
	var task protocol.ResearchTask
	u.Get(t, "/research-tasks/"+id, &task)
	body := u.Do(t, http.MethodGet, "/research-tasks/"+id+"/events", nil).Want(t, http.StatusOK, nil).Body
	events, err := ReadFrames(body)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	read := verify.ReadResearch(id, events)
	Report(t, id, read.Findings, read.CheckResource(&task, cancelled), u.Witness.CheckAll(id, events))
	if read.End == nil {
		t.Fatalf("the log of %s has no end: %+v", id, task)
	}
	return read, &task
}

// ReadFrames returns the events of a whole response.
func ReadFrames(body []byte) (events []verify.Event, err error) {
	for frames := client.NewFrameReader(bytes.NewReader(body)); ; {
		frame, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		sequence, kind, is := protocol.FrameHead(frame.Data)
		if err != nil || !is || kind != string(frame.Event) || string(frame.ID) != strconv.FormatInt(sequence, 10) {
			return nil, fmt.Errorf("id %s, event %s, data %s: %w", frame.ID, frame.Event, frame.Data, err)
		}
		events = append(events, verify.Event{Sequence: sequence, Type: protocol.EventType(kind), Data: string(frame.Data)})
	}
}

// Arm replaces the armed failpoints of a running program by those of a specification.
func Arm(ctx context.Context, internal, spec string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+internal+"/failpoints", strings.NewReader(spec))
	if err != nil {
		return err
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(response.Body) // the message shows what was read
		return fmt.Errorf("%s %s", response.Status, text)
	}
	return nil
}

// ScriptedAnswer returns what the scripted model says to a request to a stand-in.
func ScriptedAnswer(r modeltest.Request) string {
	var b strings.Builder
	request := llm.Request{System: r.System, Messages: r.Messages, MaxOutputTokens: 1 << 20}
	err := scripted.New(scripted.Options{}).Stream(context.Background(), request, func(chunk llm.Chunk) error {
		if chunk.Kind == llm.ChunkText {
			b.WriteString(chunk.Text)
		}
		return nil
	})
	if err != nil {
		return fmt.Sprintf("The scripted model failed: %v", err)
	}
	return b.String()
}
