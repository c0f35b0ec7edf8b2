package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

const (
	modelPieces   = 120
	modelInterval = 20 * time.Millisecond
	unavailable   = "model_unavailable"
	notUnderstood = "model_protocol"
)

func modelText() (pieces []string) {
	for i := range modelPieces {
		pieces = append(pieces, fmt.Sprintf("word%d ", i))
	}
	return pieces
}

// modelRow is the expected outcome of turns while the link to the model is broken: of a turn whose answer is streaming,
// and of a turn that is started during the fault. Nothing else is affected. A turn that does not complete reports the
// reason, can be retried, and keeps the text so far.
type modelRow struct {
	fault              string
	streaming, started []protocol.TurnState
	codes              []protocol.TurnErrorCode
	noticed            bool // /ready reports the fault, once the last successful probe is too old
	// repairBeforeEnd means that the fault ends before the turns do, because they need that to end.
	repairBeforeEnd bool
}

var (
	completes = []protocol.TurnState{protocol.TurnCompleted}
	breaksOff = []protocol.TurnState{protocol.TurnIncomplete}
	fails     = []protocol.TurnState{protocol.TurnFailed}
)

// Rows of one slice share a site. The service waits for a half-open connection as long as a model may be silent, 45 s;
// then the answer continues over a new connection.
var modelTable = [][]modelRow{
	{{fault: "half-open", streaming: completes, started: []protocol.TurnState{protocol.TurnCancelled}, noticed: true, repairBeforeEnd: true}},
	{
		{fault: "down", streaming: breaksOff, started: fails, codes: []protocol.TurnErrorCode{unavailable}},
		{fault: "refused", streaming: breaksOff, started: fails, codes: []protocol.TurnErrorCode{unavailable}},
		{fault: "reset", streaming: breaksOff, started: fails, codes: []protocol.TurnErrorCode{unavailable}},
		{fault: "garbage", streaming: []protocol.TurnState{protocol.TurnIncomplete, protocol.TurnFailed}, started: fails, codes: []protocol.TurnErrorCode{unavailable, notUnderstood}},
	},
	{
		{fault: "slow", streaming: completes, started: completes},
		{fault: "bandwidth", streaming: completes, started: completes},
		{fault: "flapping", streaming: breaksOff, started: completes, codes: []protocol.TurnErrorCode{unavailable}}, // see flap
	},
}

func modelLane(t *testing.T, r *report, rows []modelRow) {
	t.Run("model", func(t *testing.T) {
		server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Interval: modelInterval, Steps: []modeltest.Step{{Text: modelText()}}})
		t.Cleanup(server.Close)
		address := strings.TrimSuffix(strings.TrimPrefix(server.URL, "http://"), "/v1")
		l := newLink(t, address)
		site := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=http://"+l.Address+"/v1", "TURNSTONE_MODEL_BALANCED=some-model")
		site.Start()
		for _, row := range rows {
			t.Run(row.fault, func(t *testing.T) { row.run(t, r, site, l) })
		}
	})
}

func (m modelRow) run(t *testing.T, r *report, site *sitetest.Site, l *link) {
	w := &row{User: sitetest.NewUser(t, site.Base), t: t, site: site, report: r, link: "model", fault: m.fault}
	w.idle, w.renamed, w.liveConversation = w.NewConversation(t), w.NewConversation(t), w.NewConversation(t)
	streaming := w.Live(t, w.liveConversation, "Say it all.")
	if m.fault == "flapping" {
		m.flap(w, l, streaming)
	} else {
		m.lasting(w, l, streaming)
	}
	w.recover()
	if _, end := w.Chat(t, sitetest.NewChatBody("And now?").In(w.liveConversation)).ReadToEnd(t); end.Status != protocol.TurnCompleted {
		t.Errorf("the next turn ended %s", end.Status)
	}
}

// lasting injects a fault that lasts until the turns have ended or, with repairBeforeEnd, until everything else was
// checked.
func (m modelRow) lasting(w *row, l *link, streaming *sitetest.Stream) {
	w.t.Helper()
	repair := faultNamed(m.fault).inject(l)
	runConcurrently(
		func() { w.useWithoutModel() },
		func() {
			if m.noticed {
				w.awaitDown("model_access")
			} else {
				w.healthy()
			}
		},
		func() {
			w.report.cell()
			if started := w.startTurn(); m.repairBeforeEnd {
				w.Cancel(w.t, started)
			} else {
				m.checkEnd(w, started, m.started)
			}
		},
		func() {
			w.report.cell()
			if !m.repairBeforeEnd {
				m.checkEnd(w, streaming, m.streaming)
			}
		},
	)
	repair()
	if m.repairBeforeEnd {
		m.checkEnd(w, streaming, m.streaming)
	}
}

// flap breaks the streaming turn twice and refuses every second connection in between. It counts connections, because the
// outcome would otherwise depend on when the link is up. A turn survives the first break; after the second one, it ends
// with the text so far. A turn whose first connection is refused uses another one and completes.
func (m modelRow) flap(w *row, l *link, streaming *sitetest.Stream) {
	w.t.Helper()
	first := streaming.AwaitKind(w.t, "answer.delta").Payload().(*protocol.AnswerDelta).PartID
	everySecond := func(n int) bool { return n%2 == 0 }
	l.Skip(everySecond)
	l.redirect(l.target)
	streaming.Await(w.t, "the text of the second call", func(e sitetest.Event) bool {
		delta, is := e.Payload().(*protocol.AnswerDelta)
		return is && delta.PartID != first
	})
	l.Skip(everySecond)
	l.redirect(l.target)
	w.report.cell()
	m.checkEnd(w, streaming, m.streaming)
	w.useWithoutModel()
	w.healthy()
	w.report.cell()
	started := w.startTurn()
	m.checkEnd(w, started, m.started)
	w.WantCompleted(w.t, started.Turn, w.idle, strings.Join(modelText(), ""))
	l.Skip(nil)
	l.redirect(l.target)
}

// useWithoutModel sends a read and a write, neither of which needs a model.
func (w *row) useWithoutModel() {
	w.report.cell()
	w.requestAndCheck(works, http.MethodGet, "/conversations/"+w.idle, nil)
	w.requestAndCheck(works, http.MethodPut, "/conversations/"+w.renamed+"/title", map[string]string{"title": newTitle})
}

// startTurn starts a turn. The start itself does not depend on the model.
func (w *row) startTurn() *sitetest.Stream {
	return w.Chat(w.t, sitetest.NewChatBody("Is anybody there?").In(w.idle))
}

func (m modelRow) checkEnd(w *row, s *sitetest.Stream, allowed []protocol.TurnState) {
	w.t.Helper()
	began := time.Now()
	_, end := s.ReadToEnd(w.t)
	took := time.Since(began)
	w.report.addResponse(w.link, m.fault, "turn "+string(end.Status), end.Status != protocol.TurnCompleted, took)
	if !slices.Contains(allowed, end.Status) {
		w.t.Errorf("the turn ended %s (%+v) after %s, want one of %v", end.Status, end.Error, took, allowed)
	}
	if end.Status == protocol.TurnCompleted {
		return
	}
	if end.Error == nil || !slices.Contains(m.codes, end.Error.Code) || (end.Error.Code == unavailable && !end.Error.Retryable) {
		w.t.Errorf("the turn ended %s with %+v, want one of %v", end.Status, end.Error, m.codes)
	}
	w.checkSavedText(s.Turn)
}

// checkSavedText checks that, after a turn that did not complete, every text part of its message is a prefix of the
// model's answer.
func (w *row) checkSavedText(turn string) {
	w.t.Helper()
	whole := strings.Join(modelText(), "")
	for _, text := range sitetest.Texts(w.CheckTurn(w.t, turn).Parts) {
		if !strings.HasPrefix(whole, text) {
			w.t.Errorf("the message has the text %q", text)
		}
	}
}
