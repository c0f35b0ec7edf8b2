package uploads

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"turnstone/actors/shell"
	"turnstone/actors/upload"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/turnlog"
	"turnstone/protocol/uploadlog"
)

const (
	claimLimit  = 20 // sessions that one round claims
	storePause  = 50 * time.Millisecond
	maxPause    = time.Second      // between two tries while the store is unavailable
	verdictWait = 10 * time.Second // then the reply to a body that was received whole is that the session still scans
	drainMargin = 5 * time.Second  // for the commits that are in flight when the grace of a drain is over

	// maxReceivedScans limits the contents that are scanned while they are received. Such a scan takes as long as the client
	// does, and occupies a connection of the scanner. clamd has 100 by default, for all nodes together, and accepts no
	// other ones while they are in use.
	maxReceivedScans = 32
	// maxStoredScans limits the contents in quarantine that are scanned at the same time. Such a scan does not wait for clients.
	maxStoredScans = 4
)

var (
	commandWait  = timelimit.Of(8 * time.Second) // for the reply to a cancel
	readyTimeout = timelimit.Of(time.Second)
)

// Config is the configuration and the dependencies of a Host.
type Config struct {
	Node      protocol.NodeID
	Runtime   *shell.Runtime
	Store     Store
	Objects   Objects
	Scanner   Scanner
	Detector  Detector
	Inspector Inspector
	// Guard refuses content before it is read, for example while the disk is nearly full; nil: never.
	Guard func() error
	Live  func() int // the number of turns that run on the node
	// Entered gets each state that a session of this node enters; nil: nothing.
	Entered func(protocol.UploadState)
	Logger  *zap.Logger
}

// Host runs the upload sessions of a node. Its methods may be called from any goroutine.
type Host struct {
	// Set by New.
	Config
	log    *zap.Logger
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	watch  watchers

	pace *rate.Limiter // of all receptions; see paced

	// Each scan has a slot in one of these.
	receivedScans, storedScans chan struct{}

	// Guarded by mu.
	mu       sync.Mutex
	running  map[protocol.UploadID]*entry
	missing  map[protocol.UploadID]int32 // epochs of the own sessions that had no actor in the last round
	draining bool
	stopped  bool
	idle     chan struct{} // nil unless Drain waits; closed when no session runs
}

// entry is the entry of an actor.
type entry struct {
	account protocol.AccountID
	epoch   int32
	pid     *actor.PID
	done    <-chan struct{}
	over    bool // the actor only lingers
}

// New returns a host without sessions. Add it to its node.
func New(c Config) *Host {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{
		Config: c, log: c.Logger.Named("uploads"), ctx: ctx, cancel: cancel, running: map[protocol.UploadID]*entry{}, missing: map[protocol.UploadID]int32{},
		pace: rate.NewLimiter(rate.Limit(besideTurns*runtime.GOMAXPROCS(0)), paceBurst), receivedScans: make(chan struct{}, maxReceivedScans), storedScans: make(chan struct{}, maxStoredScans),
	}
	h.watch.moved = h.Draining
	return h
}

// Create stores a new session, which waits for its content.
func (h *Host) Create(ctx context.Context, spec *uploadlog.Spec) (*protocol.Upload, error) {
	if h.Guard != nil {
		if err := h.Guard(); err != nil {
			return nil, err
		}
	}
	b := upload.New(spec).NewBatch()
	b.Begin()
	begin := b.Append()
	frames, err := protocol.AppendUploadEvents(nil, spec.UploadID, begin.First, spec.CreatedAt, b.Events)
	if err != nil {
		return nil, err
	}
	begin.Frames, begin.At = frames, spec.CreatedAt
	created, err := h.Store.CreateUpload(ctx, spec, begin)
	if err == nil && h.Entered != nil {
		h.Entered(protocol.UploadPending)
	}
	return created, err
}

// Receive receives the content of a session. It returns the session as soon as it has ended or waits again, or when it
// still scans after verdictWait. The error is that of ClaimPending, the reason why the content was not accepted, or
// protocol.CodeUnavailable while a dependency is unavailable. body is not read before all of them are known to work, and
// not after Receive has returned.
func (h *Host) Receive(ctx context.Context, account protocol.AccountID, id protocol.UploadID, body Body) (*protocol.Upload, error) {
	if h.Draining() {
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "This node is shutting down. Send the file again.", RetryAfter: 1}
	}
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	claim, err := h.Store.ClaimPending(ctx, account, id, h.Node)
	if err != nil {
		return nil, err
	}
	r := newReception(body)
	e := h.spawn(claim, receive{r})
	if e == nil {
		return nil, h.gone(ctx, claim)
	}
	switch err = r.wait(e.done); {
	case errors.Is(err, errEnded):
		return nil, h.conflictNow(ctx, account, id)
	case errors.Is(err, errGone):
		return nil, h.gone(ctx, claim)
	case err != nil:
		return nil, err
	}
	return h.await(ctx, account, id, verdictWait, func(u *protocol.Upload) bool {
		return u.State != protocol.UploadReceiving && u.State != protocol.UploadScanning
	})
}

// ready checks the dependencies of a reception.
func (h *Host) ready(ctx context.Context) error {
	if h.Guard != nil {
		if err := h.Guard(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	scanner := make(chan error, 1)
	go func() { scanner <- h.Scanner.Ready(ctx) }()
	if err := errors.Join(h.Objects.Ready(ctx), <-scanner); err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "Files cannot be received now. Send the file again.", RetryAfter: 1, Err: err}
	}
	return nil
}

// conflictNow returns the error for a command that the current state of a session does not allow.
func (h *Host) conflictNow(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error {
	current, err := h.Store.Upload(context.WithoutCancel(ctx), account, id)
	if err != nil {
		return err
	}
	return uploadlog.Conflict(current)
}

// errGone means that the session's actor has ended: the outcome is in the store.
var errGone = &protocol.Error{Code: protocol.CodeUnavailable, Detail: protocol.OutcomeUnknown, RetryAfter: 1}

// gone returns the error for a content whose actor has ended or could not start. If another command has taken the session
// over since the claim, or has ended it, it is the conflict with what that command did, here or on another node: its actor
// may not run yet, or not any more, so only the store knows. Otherwise the outcome is unknown: a session that is ready, or
// has not ended, may have this content, or still get it.
func (h *Host) gone(ctx context.Context, claim *uploadlog.Claim) error {
	ctx = context.WithoutCancel(ctx)
	of := Claimed{AccountID: claim.AccountID, UploadID: claim.UploadID, Epoch: claim.Epoch}
	if overtaken, err := h.Store.Overtaken(ctx, of, quarantineKey(&claim.Spec, claim.Epoch)); err == nil && overtaken {
		return h.conflictNow(ctx, claim.AccountID, claim.UploadID)
	}
	current, err := h.Store.Upload(ctx, claim.AccountID, claim.UploadID)
	if err == nil && current.State.Terminal() && current.State != protocol.UploadReady {
		return uploadlog.Conflict(current)
	}
	return errGone
}

// Cancel ends a session for its user. The error is that of SeizeUpload. Of several cancels at the same time, one ends the
// session.
func (h *Host) Cancel(ctx context.Context, account protocol.AccountID, id protocol.UploadID) (*protocol.Upload, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		switch err := h.tryCancel(ctx, account, id); {
		case err == nil:
			return h.Store.Upload(context.WithoutCancel(ctx), account, id)
		case errors.Is(err, errEnded):
			return nil, h.conflictNow(ctx, account, id)
		case errors.Is(err, turnlog.ErrFenced): // another command has claimed the session since
		default:
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errGone
		}
	}
}

// tryCancel passes a cancel to the actor of the session, or starts one for it. The error is turnlog.ErrFenced if the session
// got another owner or epoch in the meantime.
func (h *Host) tryCancel(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error {
	reply := make(chan error, 1)
	if !h.send(account, id, cancelUpload{reply}) {
		claim, err := h.Store.SeizeUpload(ctx, account, id, h.Node)
		if err != nil {
			return err
		}
		switch {
		case h.spawn(claim, cancelUpload{reply}) != nil:
		case h.Draining():
			return errGone
		default: // there is an actor of a later claim
			return turnlog.ErrFenced
		}
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return errGone
	}
}

// Upload reads a session. If atMost is positive, it waits up to that time for a change of a session that has not ended.
func (h *Host) Upload(ctx context.Context, account protocol.AccountID, id protocol.UploadID, atMost time.Duration) (*protocol.Upload, error) {
	current, err := h.Store.Upload(ctx, account, id)
	if err != nil || atMost <= 0 || current.State.Terminal() {
		return current, err
	}
	return h.await(ctx, account, id, atMost, func(u *protocol.Upload) bool { return u.LastSequence != current.LastSequence })
}

// send sends a message to the actor of a session. It returns false if the session has none here that still decides.
func (h *Host) send(account protocol.AccountID, id protocol.UploadID, message any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.running[id]
	if e == nil || e.over || e.account != account {
		return false
	}
	h.Runtime.Send(e.pid, message)
	return true
}

// spawn starts the actor of a claimed session with its first message. It returns nil, and starts nothing, if the host is
// stopped or already has an actor of this epoch or a later one.
func (h *Host) spawn(claim *uploadlog.Claim, first any) *entry {
	s := newSession(h, claim)
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.running[claim.UploadID]; h.stopped || old != nil && old.epoch >= claim.Epoch {
		return nil
	}
	e := &entry{account: claim.AccountID, epoch: claim.Epoch, done: s.shell.Stopped()}
	e.pid = h.Runtime.Spawn(fmt.Sprintf("upload/%s/%d/", claim.UploadID, claim.Epoch), s.shell)
	h.running[claim.UploadID] = e
	h.Runtime.Send(e.pid, first)
	if claim.State == protocol.UploadScanning {
		h.Runtime.Send(e.pid, shell.StartTimer{Delay: scanTime(claim, time.Now()), Message: deadlinePassed{}})
	}
	return e
}

// ended notes that an actor makes no more decisions; a lost one is removed at once.
func (h *Host) ended(id protocol.UploadID, epoch int32, status shell.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.running[id]; e != nil && e.epoch == epoch {
		e.over = true
		if status == shell.Lost {
			delete(h.running, id)
		}
	}
	h.checkIdle()
}

// remove removes an actor that has finished lingering.
func (h *Host) remove(id protocol.UploadID, epoch int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.running[id]; e != nil && e.epoch == epoch {
		delete(h.running, id)
	}
	h.checkIdle()
}

// checkIdle closes idle when no session runs. The caller holds mu.
func (h *Host) checkIdle() {
	if h.idle == nil {
		return
	}
	for _, e := range h.running {
		if !e.over {
			return
		}
	}
	close(h.idle)
	h.idle = nil
}

// Adopt implements actors.Host.
func (h *Host) Adopt(ctx context.Context) error {
	due, err := h.Store.ClaimDue(ctx, h.Node, claimLimit)
	if err != nil {
		return fmt.Errorf("claiming upload sessions: %w", err)
	}
	for _, claim := range due {
		h.takeOver(claim)
	}
	own, err := h.Store.OwnUploads(ctx, h.Node)
	if err != nil {
		return fmt.Errorf("listing upload sessions: %w", err)
	}
	for _, claim := range h.withoutActor(own) {
		claim, err := h.Store.ReclaimUpload(ctx, claim, h.Node)
		if errors.Is(err, turnlog.ErrFenced) {
			continue // it ended or changed its owner in the meantime
		} else if err != nil {
			return fmt.Errorf("reclaiming an upload session: %w", err)
		}
		h.takeOver(claim)
	}
	return nil
}

// withoutActor returns the sessions that had no actor in this round and in the last one.
func (h *Host) withoutActor(own []Claimed) (lost []Claimed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	missing := map[protocol.UploadID]int32{}
	for _, claim := range own {
		if e := h.running[claim.UploadID]; e != nil && e.epoch == claim.Epoch {
			continue
		}
		if epoch, twice := h.missing[claim.UploadID]; twice && epoch == claim.Epoch {
			lost = append(lost, claim)
			continue
		}
		missing[claim.UploadID] = claim.Epoch
	}
	h.missing = missing
	return lost
}

// takeOver continues a claimed session. If reading it fails, a later round finds it without an actor.
func (h *Host) takeOver(claim Claimed) {
	h.start(func() {
		loaded, err := h.Store.LoadUpload(h.ctx, claim, h.Node)
		if err != nil {
			h.log.Warn("a claimed upload session could not be read", zap.Stringer("upload", claim.UploadID), zap.Error(err))
			return
		}
		h.spawn(loaded, adopt{})
	})
}

// start runs f in a goroutine that Stop waits for. Once the host is stopped, it returns false and does nothing.
func (h *Host) start(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	h.wg.Go(f)
	return true
}

// store stores a batch in a separate goroutine, and repeats it while the store is unavailable.
func (h *Host) store(batch *uploadlog.Append, done func(error)) {
	started := h.start(func() {
		for pause := storePause; ; pause = min(2*pause, maxPause) {
			err := h.Store.AppendUpload(h.ctx, batch)
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				done(err)
				return
			}
			h.log.Warn("a batch of an upload session was not stored, will retry", zap.Stringer("upload", batch.UploadID), zap.Error(err))
			if stopped := clock.Sleep(h.ctx, pause); stopped != nil {
				done(errGone)
				return
			}
		}
	})
	if !started {
		done(errGone)
	}
}

// Draining reports whether the host refuses content.
func (h *Host) Draining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining || h.stopped
}

// Drain implements actors.Host.
func (h *Host) Drain(ctx context.Context, grace time.Duration) {
	h.mu.Lock()
	h.draining = true
	idle := make(chan struct{})
	h.idle = idle
	h.checkIdle()
	h.mu.Unlock()
	h.watch.wakeAll()
	for _, step := range []struct {
		wait time.Duration
		then any
	}{{grace, release{}}, {drainMargin, shell.Release{}}} {
		timer := time.NewTimer(step.wait)
		select {
		case <-idle:
			timer.Stop()
			return
		case <-ctx.Done():
		case <-timer.C:
		}
		h.each(func(e *entry) { h.Runtime.Send(e.pid, step.then) })
	}
}

// each calls f for every actor.
func (h *Host) each(f func(*entry)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.running {
		f(e)
	}
}

// Abandon implements actors.Host.
func (h *Host) Abandon() { h.each(func(e *entry) { h.Runtime.Send(e.pid, shell.Abandon{}) }) }

// Stop implements actors.Host.
func (h *Host) Stop() {
	h.mu.Lock()
	h.stopped = true
	var all []*entry
	for _, e := range h.running {
		all = append(all, e)
	}
	h.mu.Unlock()
	h.cancel()
	h.watch.wakeAll()
	for _, e := range all {
		h.Runtime.Stop(e.pid)
	}
	for _, e := range all {
		<-e.done
	}
	h.wg.Wait()
}
