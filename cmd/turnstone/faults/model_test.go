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

// modelRow is what becomes of turns while the way to the model is broken: of one whose answer is being given, and of one
// that is begun. Nobody but these two notices. A turn that does not complete says why, says that it may be tried again,
// and keeps what the model had said.
type modelRow struct {
	fault       string
	under, anew []protocol.TurnState
	codes       []string
	noticed     bool // /ready names it, within the age of the last good probe
	// healed ends the fault before the turns end: they need it to.
	healed bool
}

var (
	completes = []protocol.TurnState{protocol.TurnCompleted}
	breaksOff = []protocol.TurnState{protocol.TurnIncomplete}
	fails     = []protocol.TurnState{protocol.TurnFailed}
	either    = []protocol.TurnState{protocol.TurnCompleted, protocol.TurnIncomplete, protocol.TurnFailed}
)

// Rows of one slice share a site. A half-open connection is waited for as long as a model may be silent, 45 s; then the
// answer goes on over a new one.
var modelTable = [][]modelRow{
	{{fault: "half-open", under: completes, anew: []protocol.TurnState{protocol.TurnCancelled}, noticed: true, healed: true}},
	{
		{fault: "down", under: breaksOff, anew: fails, codes: []string{unavailable}},
		{fault: "refused", under: breaksOff, anew: fails, codes: []string{unavailable}},
		{fault: "reset", under: breaksOff, anew: fails, codes: []string{unavailable}},
		{fault: "garbage", under: []protocol.TurnState{protocol.TurnIncomplete, protocol.TurnFailed}, anew: fails, codes: []string{unavailable, notUnderstood}},
	},
	{
		{fault: "slow", under: completes, anew: completes},
		{fault: "bandwidth", under: completes, anew: completes},
		{fault: "flapping", under: either, anew: either, codes: []string{unavailable}},
	},
}

func modelLane(t *testing.T, r *report, rows []modelRow) {
	t.Run("model", func(t *testing.T) {
		server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Interval: modelInterval, Steps: []modeltest.Step{{Text: modelText()}}})
		t.Cleanup(server.Close)
		address := strings.TrimSuffix(strings.TrimPrefix(server.URL, "http://"), "/v1")
		l := newLink(t, address)
		site := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=http://"+l.address()+"/v1", "TURNSTONE_MODEL_BALANCED=some-model")
		site.Up()
		for _, row := range rows {
			t.Run(row.fault, func(t *testing.T) { row.run(t, r, site, l) })
		}
	})
}

func (m modelRow) run(t *testing.T, r *report, site *sitetest.Site, l *link) {
	w := &row{User: sitetest.NewUser(t, site.Base), t: t, site: site, report: r, link: "model", fault: m.fault}
	w.kept, w.renamed, w.talks = w.NewConversation(t), w.NewConversation(t), w.NewConversation(t)
	under := w.Live(t, w.talks, "Say it all.")
	heal := faultNamed(m.fault).strike(l)
	beside(
		func() { w.bystander() },
		func() {
			if m.noticed {
				w.notice("model_access")
			} else {
				w.healthy()
			}
		},
		func() {
			r.cell()
			if anew := w.anew(); m.healed {
				w.Cancel(t, anew)
			} else {
				m.hold(w, anew, m.anew)
			}
		},
		func() {
			r.cell()
			if !m.healed {
				m.hold(w, under, m.under)
			}
		},
	)
	heal()
	if m.healed {
		m.hold(w, under, m.under)
	}
	w.recover()
	if _, end := w.Chat(t, sitetest.Saying("And now?").In(w.talks)).ToTheEnd(t); end.Status != protocol.TurnCompleted {
		t.Errorf("the next turn ended %s", end.Status)
	}
}

// bystander reads and writes: neither needs a model.
func (w *row) bystander() {
	w.report.cell()
	w.hold(works, http.MethodGet, "/conversations/"+w.kept, nil)
	w.hold(works, http.MethodPut, "/conversations/"+w.renamed+"/title", map[string]string{"title": newTitle})
}

// anew begins a turn; that it was begun does not depend on the model.
func (w *row) anew() *sitetest.Stream {
	return w.Chat(w.t, sitetest.Saying("Is anybody there?").In(w.kept))
}

func (m modelRow) hold(w *row, s *sitetest.Stream, allowed []protocol.TurnState) {
	w.t.Helper()
	began := time.Now()
	_, end := s.ToTheEnd(w.t)
	took := time.Since(began)
	w.report.answered(w.link, m.fault, "turn "+string(end.Status), end.Status != protocol.TurnCompleted, took)
	if !slices.Contains(allowed, end.Status) {
		w.t.Errorf("the turn ended %s (%+v) after %s, want one of %v", end.Status, end.Error, took, allowed)
	}
	if end.Status == protocol.TurnCompleted {
		return
	}
	if end.Error == nil || !slices.Contains(m.codes, end.Error.Code) || (end.Error.Code == unavailable && !end.Error.Retryable) {
		w.t.Errorf("the turn ended %s with %+v, want one of %v", end.Status, end.Error, m.codes)
	}
	w.keptSaid(s.Turn)
}

// keptSaid: the message of a turn that broke off is the beginning of what the model said, or more than once the beginning.
func (w *row) keptSaid(turn string) {
	w.t.Helper()
	events, _ := w.WholeLog(w.t, turn)
	whole := strings.Join(modelText(), "")
	for _, text := range sitetest.Texts(sitetest.Fold(events)) {
		if !strings.HasPrefix(whole, text) {
			w.t.Errorf("the message says %q", text)
		}
	}
}
