package upload

import (
	"context"
	"errors"
	"runtime"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"turnstone/actors/follow"
	"turnstone/actors/host"
	"turnstone/actors/shell"
	"turnstone/actors/upload/machine"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/uploadlog"
)

const (
	verdictWait = 10 * time.Second // then the reply to a body that was received whole is that the upload still scans

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
	Node      host.Node
	Store     Store
	Objects   Objects
	Scanner   Scanner
	Detector  Detector
	Inspector Inspector
	// Guard refuses content before it is read, for example while the disk is nearly full; nil: never.
	Guard func() error
	Live  func() int // the number of turns that run on the node
	// Entered gets each state that an upload of this node enters; nil: nothing.
	Entered func(protocol.UploadState)
	Logger  *zap.Logger
}

// Host runs the uploads of a node. Its methods may be called from any goroutine.
type Host struct {
	*host.Host[protocol.UploadID, Claimed, struct{}]

	// Set by New.
	config Config
	log    *zap.Logger
	logs   follow.Logs[protocol.UploadID]
	pace   *rate.Limiter // of all transfers; see paced

	// Each scan has a slot in one of these.
	receivedScans, storedScans chan struct{}
}

// Reader follows the events of one upload.
type Reader = follow.Reader[protocol.UploadID]

// running is the entry of an upload's actor.
type running = host.Actor[struct{}]

// New creates a host without uploads. It is called before the node starts.
func New(c Config) *Host {
	h := &Host{
		config: c, log: c.Logger.Named("uploads"), pace: rate.NewLimiter(rate.Limit(whileTurnsRun*runtime.GOMAXPROCS(0)), paceBurst),
		receivedScans: make(chan struct{}, maxReceivedScans), storedScans: make(chan struct{}, maxStoredScans),
	}
	h.Host = host.New[protocol.UploadID, Claimed, struct{}](host.Config{
		Node: c.Node, Name: "upload", Release: release{}, Closing: h.logs.WakeAll,
	}, host.StoreKind[Claimed, *uploadlog.Claim]{
		Node: c.Node.ID, Store: c.Store, Due: c.Store.ClaimDue,
		Start: func(claim *uploadlog.Claim) { h.spawn(claim, adopt{}) },
		Unread: func(claim Claimed, err error) {
			h.log.Warn("a claimed upload could not be read", zap.Stringer("upload", claim.UploadID), zap.Error(err))
		},
	})
	h.logs.Frames, h.logs.Ends, h.logs.Moved = c.Store.UploadFrames, protocol.EndsUpload, h.Draining
	return h
}

// Drain implements node.Host. It releases nothing: an upload that waits for its content has no owner, and another one is
// continued by the next process, or when this node is dead.
func (h *Host) Drain(ctx context.Context, grace time.Duration) (released int, err error) {
	h.Host.Drain(ctx, grace)
	return 0, nil
}

// Create stores a new upload, which waits for its content.
func (h *Host) Create(ctx context.Context, spec *uploadlog.Spec) (*protocol.Upload, error) {
	if h.config.Guard != nil {
		if err := h.config.Guard(); err != nil {
			return nil, err
		}
	}
	b := machine.New(spec).NewBatch()
	b.Begin()
	begin := b.Append()
	frames, err := protocol.AppendUploadEvents(nil, spec.UploadID, begin.First, spec.CreatedAt, b.Events)
	if err != nil {
		return nil, err
	}
	begin.Frames, begin.At = frames, spec.CreatedAt
	created, err := h.config.Store.CreateUpload(ctx, spec, begin)
	if err == nil && h.config.Entered != nil {
		h.config.Entered(protocol.UploadPending)
	}
	return created, err
}

// Receive receives the content of an upload. It returns the upload as soon as it has ended or waits again, or when it
// still scans after verdictWait. The error is that of ClaimPending, the reason why the content was not accepted, or
// protocol.CodeUnavailable while a dependency is unavailable. body is not read before all of them are known to work, and
// not after Receive has returned.
func (h *Host) Receive(ctx context.Context, account protocol.AccountID, id protocol.UploadID, body Body) (*protocol.Upload, error) {
	if h.Draining() {
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The server is shutting down. Upload the file again.", RetryAfter: 1}
	}
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	claim, err := h.config.Store.ClaimPending(ctx, account, id, h.config.Node.ID)
	if err != nil {
		return nil, err
	}
	r := newTransfer(body)
	e := h.spawn(claim, receive{r})
	if e == nil {
		return nil, h.gone(ctx, claim)
	}
	switch err = r.wait(e.Done()); {
	case errors.Is(err, errEnded):
		return nil, h.conflictNow(ctx, account, id)
	case errors.Is(err, host.ErrGone):
		return nil, h.gone(ctx, claim)
	case err != nil:
		return nil, err
	}
	return h.await(ctx, account, id, verdictWait, func(u *protocol.Upload) bool {
		return u.State != protocol.UploadReceiving && u.State != protocol.UploadScanning
	})
}

// ready checks the dependencies of a transfer.
func (h *Host) ready(ctx context.Context) error {
	if h.config.Guard != nil {
		if err := h.config.Guard(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	scanner := make(chan error, 1)
	go func() { scanner <- h.config.Scanner.Ready(ctx) }()
	if err := errors.Join(h.config.Objects.Ready(ctx), <-scanner); err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "Files cannot be received now. Upload the file again.", RetryAfter: 1, Err: err}
	}
	return nil
}

// conflictNow returns the error for a command that the current state of an upload does not allow.
func (h *Host) conflictNow(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error {
	current, err := h.config.Store.Upload(context.WithoutCancel(ctx), account, id)
	if err != nil {
		return err
	}
	return uploadlog.Conflict(current)
}

// gone returns the error for a content whose actor has ended or could not start. If another command has taken the upload
// over since the claim, or has ended it, it is the conflict with what that command did, here or on another node: its actor
// may not run yet, or not any more, so only the store knows. Otherwise the outcome is unknown: an upload that is ready, or
// has not ended, may have this content, or still get it.
func (h *Host) gone(ctx context.Context, claim *uploadlog.Claim) error {
	ctx = context.WithoutCancel(ctx)
	of := Claimed{AccountID: claim.AccountID, UploadID: claim.UploadID, Epoch: claim.Epoch}
	if overtaken, err := h.config.Store.Overtaken(ctx, of, quarantineKey(&claim.Spec, claim.Epoch)); err == nil && overtaken {
		return h.conflictNow(ctx, claim.AccountID, claim.UploadID)
	}
	current, err := h.config.Store.Upload(ctx, claim.AccountID, claim.UploadID)
	if err == nil && current.State.Terminal() && current.State != protocol.UploadReady {
		return uploadlog.Conflict(current)
	}
	return host.ErrGone
}

// Cancel ends an upload for its user. The error is that of ClaimAny. Of several cancels at the same time, one ends the
// upload.
func (h *Host) Cancel(ctx context.Context, account protocol.AccountID, id protocol.UploadID) (*protocol.Upload, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		switch err := h.tryCancel(ctx, account, id); {
		case err == nil:
			return h.config.Store.Upload(context.WithoutCancel(ctx), account, id)
		case errors.Is(err, errEnded):
			return nil, h.conflictNow(ctx, account, id)
		case errors.Is(err, ownership.ErrFenced): // another command has claimed the upload since
		default:
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, host.ErrGone
		}
	}
}

// tryCancel passes a cancel to the actor of the upload, or starts one for it. The error is ownership.ErrFenced if the upload
// got another owner or epoch in the meantime.
func (h *Host) tryCancel(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error {
	reply := make(chan error, 1)
	if actor := h.FindActive(account, id); actor != nil {
		h.Send(actor, cancelUpload{reply})
	} else {
		claim, err := h.config.Store.ClaimAny(ctx, account, id, h.config.Node.ID)
		if err != nil {
			return err
		}
		switch {
		case h.spawn(claim, cancelUpload{reply}) != nil:
		case h.Draining():
			return host.ErrGone
		default: // there is an actor of a later claim
			return ownership.ErrFenced
		}
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return host.ErrGone
	}
}

// Upload reads an upload. If atMost is positive, it waits up to that time for a change of an upload that has not ended.
func (h *Host) Upload(ctx context.Context, account protocol.AccountID, id protocol.UploadID, atMost time.Duration) (*protocol.Upload, error) {
	current, err := h.config.Store.Upload(ctx, account, id)
	if err != nil || atMost <= 0 || current.State.Terminal() {
		return current, err
	}
	return h.await(ctx, account, id, atMost, func(u *protocol.Upload) bool { return u.LastSequence != current.LastSequence })
}

// Follow returns a reader of an upload that starts after a sequence. The caller must have checked that the account owns the
// upload.
func (h *Host) Follow(account protocol.AccountID, id protocol.UploadID, after int64) *Reader {
	return h.logs.Follow(account, id, after)
}

// await reads an upload until it is as wanted, at most for a time. It returns the upload as it last was.
func (h *Host) await(
	ctx context.Context, account protocol.AccountID, id protocol.UploadID, atMost time.Duration, wanted func(*protocol.Upload) bool,
) (current *protocol.Upload, err error) {
	err = h.logs.Await(ctx, account, id, atMost, func() (bool, error) {
		current, err = h.config.Store.Upload(ctx, account, id)
		return err == nil && wanted(current), err
	})
	return current, err
}

// spawn starts the actor of a claimed upload with its first message. It returns nil, and starts nothing, if the host is
// stopped or already has an actor of this epoch or a later one.
func (h *Host) spawn(claim *uploadlog.Claim, first any) *running {
	s, messages := newUploadActor(h, claim), []any{first}
	if claim.State == protocol.UploadScanning {
		messages = append(messages, shell.StartTimer{Delay: scanTime(claim, time.Now()), Message: deadlinePassed{}})
	}
	return h.Spawn(claim.UploadID, &running{Account: claim.AccountID, Epoch: claim.Epoch}, s.shell, messages...)
}
