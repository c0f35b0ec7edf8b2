package machine

import (
	"slices"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

func newSpec() *uploadlog.Spec {
	return &uploadlog.Spec{
		AccountID: protocol.NewAccountID(), UploadID: protocol.NewUploadID(), Filename: "a.txt", MediaType: "text/plain", Size: 100,
		ObjectName: "object", CreatedAt: time.Unix(1, 0), ExpiresAt: time.Unix(2, 0),
	}
}

var (
	content  = &uploadlog.Content{Key: "q/x", Size: 100, MediaType: "text/plain"}
	lost     = &protocol.UploadFailure{Code: protocol.UploadConnectionLost, Detail: "lost"}
	wrong    = &protocol.UploadFailure{Code: protocol.UploadContentMismatch, Detail: "wrong"}
	clean    = protocol.ScanVerdict{Clean: true, Engine: "engine"}
	infected = protocol.ScanVerdict{Signature: "Eicar", Engine: "engine"}
)

// at returns a machine in a state, as its owner finds it in the store.
func at(state protocol.UploadState) *Machine {
	claim := &uploadlog.Claim{Spec: *newSpec(), Epoch: 1, State: state, NextSequence: 5}
	if state == protocol.UploadScanning {
		claim.Content = content
	}
	return Restore(claim)
}

// triggers are all triggers of an upload with the states in which they have an effect, and the state that follows.
var triggers = []struct {
	name string
	fire func(b *Batch)
	to   map[protocol.UploadState]protocol.UploadState // without a change of the state: the same state
	does map[protocol.UploadState][]Effect
}{
	{
		"receive", func(b *Batch) { b.Receive() },
		map[protocol.UploadState]protocol.UploadState{protocol.UploadPending: protocol.UploadReceiving},
		map[protocol.UploadState][]Effect{protocol.UploadPending: {StartReceiving}},
	},
	{"interrupted", func(b *Batch) { b.Interrupted(lost) }, map[protocol.UploadState]protocol.UploadState{protocol.UploadReceiving: protocol.UploadPending}, nil},
	{"received", func(b *Batch) { b.Received(content, nil) }, map[protocol.UploadState]protocol.UploadState{protocol.UploadReceiving: protocol.UploadScanning}, nil},
	{"mismatch", func(b *Batch) { b.Received(content, wrong) }, map[protocol.UploadState]protocol.UploadState{protocol.UploadReceiving: protocol.UploadRejected}, nil},
	{"clean", func(b *Batch) { b.Scanned(clean) }, nil, map[protocol.UploadState][]Effect{protocol.UploadScanning: {Publish}}},
	{"infected", func(b *Batch) { b.Scanned(infected) }, map[protocol.UploadState]protocol.UploadState{protocol.UploadScanning: protocol.UploadRejected}, nil},
	{"encrypted without a verdict", func(b *Batch) { b.Encrypted() }, nil, nil},
	{
		"encrypted", func(b *Batch) { b.Scanned(clean); b.Effects = nil; b.Encrypted() },
		map[protocol.UploadState]protocol.UploadState{protocol.UploadScanning: protocol.UploadRejected},
		nil,
	},
	{"scanner down", func(b *Batch) { b.ScanFailed(protocol.CodeUnavailable) }, nil, map[protocol.UploadState][]Effect{protocol.UploadScanning: {RetryScan}}},
	{"too large to scan", func(b *Batch) { b.ScanFailed(protocol.CodeTooLarge) }, map[protocol.UploadState]protocol.UploadState{protocol.UploadScanning: protocol.UploadRejected}, nil},
	{"content lost", func(b *Batch) { b.ScanFailed(protocol.CodeNotFound) }, map[protocol.UploadState]protocol.UploadState{protocol.UploadScanning: protocol.UploadFailed}, nil},
	{"published without a verdict", func(b *Batch) { b.Published(protocol.FileText) }, nil, nil},
	{
		"published", func(b *Batch) { b.Scanned(clean); b.Effects = nil; b.Published(protocol.FileText) },
		map[protocol.UploadState]protocol.UploadState{protocol.UploadScanning: protocol.UploadReady},
		nil,
	},
	{"publication failed", func(b *Batch) { b.PublishFailed(protocol.CodeUnavailable) }, nil, map[protocol.UploadState][]Effect{protocol.UploadScanning: {RetryPublish}}},
	{"deadline", func(b *Batch) { b.Deadline() }, map[protocol.UploadState]protocol.UploadState{protocol.UploadScanning: protocol.UploadFailed}, map[protocol.UploadState][]Effect{protocol.UploadScanning: {StopWork}}},
	{
		"adopt", func(b *Batch) { b.Adopt() },
		map[protocol.UploadState]protocol.UploadState{protocol.UploadPending: protocol.UploadExpired, protocol.UploadReceiving: protocol.UploadPending},
		map[protocol.UploadState][]Effect{protocol.UploadScanning: {StartScan}},
	},
	{
		"cancel", func(b *Batch) { b.Cancel() },
		map[protocol.UploadState]protocol.UploadState{
			protocol.UploadPending: protocol.UploadCancelled, protocol.UploadReceiving: protocol.UploadCancelled, protocol.UploadScanning: protocol.UploadCancelled,
		},
		map[protocol.UploadState][]Effect{protocol.UploadPending: {StopWork}, protocol.UploadReceiving: {StopWork}, protocol.UploadScanning: {StopWork}},
	},
	{
		"release", func(b *Batch) { b.Release() }, nil,
		map[protocol.UploadState][]Effect{
			protocol.UploadPending: {Leave}, protocol.UploadReceiving: {Interrupt}, protocol.UploadScanning: {Leave},
			protocol.UploadReady: {Leave}, protocol.UploadRejected: {Leave}, protocol.UploadFailed: {Leave}, protocol.UploadExpired: {Leave}, protocol.UploadCancelled: {Leave},
		},
	},
}

// TestEveryTriggerInEveryState checks every pair: the state that follows, the effects, and that the events describe
// exactly the transition. A trigger that comes too late changes nothing.
func TestEveryTriggerInEveryState(t *testing.T) {
	for _, from := range protocol.UploadStates {
		for _, trigger := range triggers {
			m := at(from)
			b := m.NewBatch()
			trigger.fire(b)
			to, moves := trigger.to[from]
			if !moves {
				to = from
			}
			if m.State() != to || !slices.Equal(b.Effects, trigger.does[from]) {
				t.Errorf("%s in %s: state %s, effects %v", trigger.name, from, m.State(), b.Effects)
			}
			checkEvents(t, trigger.name, b, from, to)
		}
	}
}

// checkEvents checks the events of one transition.
func checkEvents(t *testing.T, trigger string, b *Batch, from, to protocol.UploadState) {
	t.Helper()
	if from == to {
		if len(b.Events) != 0 {
			t.Errorf("%s in %s: events without a transition: %v", trigger, from, b.Events)
		}
		return
	}
	changed, is := b.Events[0].(*protocol.UploadStateChanged)
	if !is || changed.From != from || changed.State != to {
		t.Errorf("%s in %s: the first event is %+v", trigger, from, b.Events[0])
	}
	if ends := len(b.Events) == 2; ends != to.Terminal() {
		t.Fatalf("%s in %s: %d events", trigger, from, len(b.Events))
	}
	batch := b.Append()
	if batch.First != 5 || batch.Last != 4+int64(len(b.Events)) || batch.Rests() == (to == protocol.UploadReceiving || to == protocol.UploadScanning) {
		t.Errorf("%s in %s: the batch is %+v", trigger, from, batch)
	}
	if !to.Terminal() {
		return
	}
	finished, is := b.Events[1].(*protocol.UploadFinished)
	if !is || finished.State != to || finished.LastSequence != batch.Last || (finished.FileID != nil) != (to == protocol.UploadReady) ||
		(batch.File != nil) != (to == protocol.UploadReady) {
		t.Errorf("%s in %s: the last event is %+v, the file %+v", trigger, from, b.Events[1], batch.File)
	}
}

func TestAnAttemptHasABoundedNumberOfProgressEvents(t *testing.T) {
	m := at(protocol.UploadReceiving)
	b := m.NewBatch()
	for n := int64(1); n <= 100; n++ {
		b.Progress(n)
	}
	if len(b.Events) != progressSteps {
		t.Errorf("%d events", len(b.Events))
	}
	if last, is := b.Events[len(b.Events)-1].(*protocol.UploadProgress); !is || last.ReceivedBytes != 100 || last.Size != 100 {
		t.Errorf("the last event is %+v", b.Events[len(b.Events)-1])
	}
	b.Interrupted(lost)
	if batch := b.Append(); batch.Received != 0 || batch.Failure != lost {
		t.Errorf("after an interruption: %+v", batch)
	}
}

// A file has the identifier that its upload determines, so that a repeated commit creates the same file.
func TestTheFileOfASessionIsDeterminedByIt(t *testing.T) {
	m := at(protocol.UploadScanning)
	b := m.NewBatch()
	b.Scanned(clean)
	b.Published(protocol.FileText)
	if file := b.Append().File; file == nil || file.FileID != protocol.DeriveFileID(m.Spec().UploadID) || file.Engine != "engine" || file.Kind != protocol.FileText {
		t.Errorf("the file is %+v", file)
	}
}

// TestEveryTransitionOfTheTableIsMade removes one row of the table after another: a trigger then makes a transition that is not legal.
func TestEveryTransitionOfTheTableIsMade(t *testing.T) {
	table := protocol.UploadTransitions
	defer func() { protocol.UploadTransitions = table }()
	for i, row := range table {
		protocol.UploadTransitions = slices.Delete(slices.Clone(table), i, i+1)
		if !anyTriggerPanics(row.From) {
			t.Errorf("no trigger makes the transition %s of an upload that is %s", row.Trigger, row.From)
		}
	}
}

// anyTriggerPanics reports whether a trigger panics in a state.
func anyTriggerPanics(from protocol.UploadState) (panics bool) {
	defer func() { panics = recover() != nil }()
	for _, trigger := range triggers {
		trigger.fire(at(from).NewBatch())
	}
	return false
}
