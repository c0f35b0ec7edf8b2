package upload

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/host"
	"turnstone/actors/shell"
	"turnstone/actors/upload/machine"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/filetype"
	"turnstone/protocol/ownership"
	"turnstone/protocol/uploadlog"
)

const (
	retryPause = time.Second // before a scan or a publication is repeated
	// scanMargin is how long an upload may scan at least, also if it was received at the end of its lifetime.
	scanMargin = 10 * time.Minute
)

// scanTime returns how long a claimed upload may still scan.
func scanTime(claim *uploadlog.Claim, now time.Time) time.Duration {
	return max(claim.ExpiresAt.Sub(now), scanMargin)
}

// uploadActor is the behavior of the actor of an upload: it passes messages to the machine as triggers, encodes what
// the machine decides, and performs its effects.
type uploadActor struct {
	// Set by newUploadActor.
	host    *Host
	shell   *shell.Shell
	machine *machine.Machine
	epoch   int32
	log     *zap.Logger
	work    context.Context // of the transfer, the scan and the publication
	stop    context.CancelFunc

	// Owned by the shell's Receive.
	batch    *machine.Batch       // nil: nothing was decided since the last step
	transfer *transfer            // nil: none
	stored   protocol.UploadState // of the last step
}

// Messages to an upload's actor, in addition to those of every actor.
type (
	receive      struct{ *transfer }
	cancelUpload struct{ reply chan error } // buffered, so that the actor never blocks
	adopt        struct{}
	release      struct{} // ends at a persisted boundary, because the node drains
	progressed   struct{ bytes int64 }
	interrupted  struct {
		failure *protocol.UploadFailure
		reason  error // for the request
	}
	received struct {
		content  *uploadlog.Content
		mismatch *protocol.UploadFailure
	}
	scanned struct {
		verdict protocol.ScanVerdict
		err     error
	}
	published      struct{ err error }
	encrypted      struct{}
	scanAgain      struct{}
	publishAgain   struct{}
	deadlinePassed struct{}
)

// errEnded means that the upload does not accept the command any more.
var errEnded = errors.New("the session has ended or is busy")

func newUploadActor(h *Host, claim *uploadlog.Claim) *uploadActor {
	work, stop := context.WithCancel(h.Context())
	s := &uploadActor{
		host: h, machine: machine.Restore(claim), epoch: claim.Epoch, work: work, stop: stop, stored: claim.State,
		log: h.log.With(zap.Stringer("upload", claim.UploadID), zap.Int32("epoch", claim.Epoch)),
	}
	s.shell = h.Shell(s, claim.UploadID, claim.Epoch, s.log)
	return s
}

// Decide implements shell.Behavior.
func (s *uploadActor) Decide(message any, status shell.Status) func(error) {
	switch cancel, is := message.(cancelUpload); {
	case is && status == shell.Finished:
		cancel.reply <- errEnded
		return nil
	case status != shell.Active:
		s.Refuse(message)
		return nil
	}
	if s.batch == nil {
		s.batch = s.machine.NewBatch()
	}
	b := s.batch
	switch message := message.(type) {
	case receive:
		s.transfer = message.transfer
		if !b.Receive() {
			return message.refuse(errEnded)
		}
	case cancelUpload:
		ended := !b.Cancel()
		return func(err error) {
			if err == nil && ended {
				err = errEnded
			}
			message.reply <- err
		}
	case adopt:
		b.Adopt()
	case release:
		b.Release()
	case progressed:
		b.Progress(message.bytes)
	case interrupted:
		b.Interrupted(message.failure)
		return s.transfer.settle(message.reason)
	case received:
		b.Received(message.content, message.mismatch)
		s.shell.After(max(time.Until(s.machine.Spec().ExpiresAt), scanMargin), deadlinePassed{})
		return s.transfer.settle(nil)
	case scanned:
		s.decideVerdict(b, message)
	case published:
		s.decidePublication(b, message)
	case encrypted:
		b.Encrypted()
	case scanAgain:
		s.perform([]machine.Effect{machine.StartScan})
	case publishAgain:
		s.perform([]machine.Effect{machine.Publish})
	case deadlinePassed:
		b.Deadline()
	}
	return nil
}

func (s *uploadActor) decideVerdict(b *machine.Batch, result scanned) {
	if result.err == nil {
		b.Scanned(result.verdict)
		return
	}
	s.log.Warn("the malware scanner gave no verdict", zap.Error(result.err))
	b.ScanFailed(protocol.CodeOf(result.err))
}

func (s *uploadActor) decidePublication(b *machine.Batch, result published) {
	if result.err == nil {
		content := s.machine.Content()
		b.Published(filetype.KindOf(content.MediaType))
		return
	}
	s.log.Warn("clean content was not published", zap.Error(result.err))
	b.PublishFailed(protocol.CodeOf(result.err))
}

// Refuse implements shell.Behavior.
func (s *uploadActor) Refuse(message any) {
	switch message := message.(type) {
	case receive:
		message.refuse(host.ErrGone)(nil)
	case cancelUpload:
		message.reply <- ownership.ErrFenced
	case interrupted, received:
		s.transfer.refuse(errEnded)(nil)
	}
}

// Step implements shell.Behavior.
func (s *uploadActor) Step(replies []func(error)) shell.Step {
	b := s.batch
	s.batch = nil
	step := shell.Step{Replies: replies}
	if b == nil {
		return step
	}
	if len(b.Effects) > 0 {
		step.Perform = func() { s.perform(b.Effects) }
	}
	if len(b.Events) == 0 {
		return step
	}
	batch := b.Append()
	batch.Owner, batch.Epoch, batch.At = s.host.config.Node.ID, s.epoch, time.Now()
	frames, err := protocol.AppendUploadEvents(nil, batch.UploadID, batch.First, batch.At, b.Events)
	if err != nil {
		panic(err)
	}
	batch.Frames = frames
	step.Point, step.Last = failpoint.UploadAfterRow, batch.Rests()
	step.Store = func(done func(error)) { s.host.store(batch, done) }
	entered := batch.State != s.stored
	s.stored = batch.State
	step.Show = func() {
		if entered && s.host.config.Entered != nil {
			s.host.config.Entered(batch.State)
		}
		s.host.logs.Changed(batch.UploadID)
		s.log.Info("upload stored", zap.String("state", string(batch.State)), zap.Int64("sequence", batch.Last))
	}
	return step
}

// perform starts effects; their results come back as messages.
func (s *uploadActor) perform(effects []machine.Effect) {
	post := s.shell.Post()
	for _, e := range effects {
		switch e {
		case machine.StartReceiving:
			r, spec := s.transfer, s.machine.Spec()
			r.started = true
			s.host.GoOr(func() { r.run(s.work, s.host, spec, s.epoch, post) }, r.finishReading)
		case machine.StartScan:
			content := *s.machine.Content()
			s.host.Go(func() { s.host.scanStored(s.work, &content, post) })
		case machine.Publish:
			content, to := *s.machine.Content(), publishedKey(s.machine.Spec())
			s.host.Go(func() { s.host.publish(s.work, &content, to, post) })
		case machine.RetryScan:
			s.shell.After(retryPause, scanAgain{})
		case machine.RetryPublish:
			s.shell.After(retryPause, publishAgain{})
		case machine.StopWork:
			s.stopWork()
		case machine.Interrupt:
			s.transfer.interrupt(machine.Restarted())
		case machine.Leave:
			post(shell.Release{})
		}
	}
}

func (s *uploadActor) stopWork() {
	s.stop()
	if s.transfer != nil {
		s.transfer.abort()
	}
}

// End implements shell.Behavior.
func (s *uploadActor) End(status shell.Status) {
	s.stopWork()
	if s.transfer != nil && status == shell.Lost { // otherwise the reply follows
		s.transfer.refuse(host.ErrGone)(nil)
	}
}

var _ shell.Behavior = (*uploadActor)(nil)
