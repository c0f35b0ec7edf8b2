package research

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/research/machine"
	"turnstone/actors/retry"
	"turnstone/actors/shell"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

// stopWait is how long the steps of a cancelled task may take to stop. Their results are not used in any case.
const stopWait = 3 * time.Second

// taskActor is the behavior of the actor of a task: it passes messages to the machine as triggers, encodes what the machine decides,
// and runs the steps.
type taskActor struct {
	// Set by newTaskActor.
	host    *Host
	shell   *shell.Shell
	machine *machine.Machine
	claim   *researchlog.Claim
	began   time.Time
	seconds int64 // for which the task had run before
	log     *zap.Logger

	// Owned by the shell's Receive.
	batch   *machine.Batch // nil: nothing was decided since the last step
	work    context.Context
	stop    context.CancelFunc
	steps   sync.WaitGroup                // that run
	running map[string]context.CancelFunc // by the keys of the steps
}

// Messages to a task's actor, in addition to those of every actor.
type (
	resume  struct{} // this node has claimed the task to run it
	command struct {
		decide  func(*machine.Batch) error
		reply   chan error // buffered, so that the actor never blocks
		claimed bool       // this node has claimed the task for the command
	}
	stepDone struct {
		key    string
		result *researchlog.Result
	}
	timeOver      struct{}
	stepsStopped  struct{}
	reportChecked struct{ err error }
)

func newTaskActor(h *Host, claim *researchlog.Claim) *taskActor {
	r := &taskActor{
		host: h, machine: machine.Restore(claim), claim: claim, began: time.Now(),
		log: h.log.With(zap.Stringer("task", claim.TaskID), zap.Int32("epoch", claim.Epoch)),
	}
	r.seconds = r.machine.Seconds()
	r.work, r.stop = context.WithCancel(h.Context())
	r.running = map[string]context.CancelFunc{}
	r.shell = h.Shell(r, claim.TaskID, claim.Epoch, r.log)
	return r
}

// elapsed returns for how many seconds the task has run.
func (r *taskActor) elapsed() int64 { return r.seconds + int64(time.Since(r.began)/time.Second) }

// Decide implements shell.Behavior.
func (r *taskActor) Decide(message any, status shell.Status) func(error) {
	switch command, is := message.(command); {
	case is && status == shell.Finished && r.machine.State().Terminal():
		command.reply <- researchlog.ErrEnded
		return nil
	case status != shell.Active:
		r.Refuse(message)
		return nil
	}
	if r.batch == nil {
		r.batch = r.machine.NewBatch()
	}
	b := r.batch
	switch message := message.(type) {
	case resume:
		r.resume(b, true)
	case command:
		if message.claimed {
			r.resume(b, false)
		}
		refused := message.decide(b)
		return func(err error) {
			if err == nil {
				err = refused
			}
			message.reply <- err
		}
	case stepDone:
		delete(r.running, message.key)
		b.Result(message.key, message.result, r.elapsed())
	case timeOver:
		b.TimeOver()
	case stepsStopped:
		b.Stopped()
	case reportChecked:
		if message.err == nil {
			b.Complete(protocol.NewMessageID())
		} else {
			b.Reject(detailOf(message.err))
		}
	}
	return nil
}

// resume begins the task, or continues it. slot reports whether this node has a slot for a task that waits.
func (r *taskActor) resume(b *machine.Batch, slot bool) {
	b.Resume(r.claim.Attempts, slot)
	left := time.Duration(r.claim.Budget.Seconds-r.seconds) * time.Second
	r.shell.After(max(0, left), timeOver{})
}

// Refuse implements shell.Behavior.
func (r *taskActor) Refuse(message any) {
	if command, is := message.(command); is {
		command.reply <- ownership.ErrFenced
	}
}

// Step implements shell.Behavior. The store takes the owner from a task that waits for a slot, so its actor ends too, even if it has
// decided nothing.
func (r *taskActor) Step(replies []func(error)) shell.Step {
	b := r.batch
	r.batch = nil
	step := shell.Step{Replies: replies}
	if b == nil || len(b.Entries) == 0 && !b.Waits() {
		return step
	}
	batch, err := r.host.encode(b, r.claim.Epoch)
	if err != nil {
		panic(err)
	}
	step.Point, step.Last = failpoint.ResearchAfterRow, b.Rests()
	step.Store = func(done func(error)) { r.host.store(batch, done) }
	step.Show = func() { r.host.shown(batch) }
	if len(b.Effects) > 0 {
		step.Perform = func() { r.perform(b.Effects) }
	}
	return step
}

// perform starts effects; their results come back as messages.
func (r *taskActor) perform(effects []machine.Effect) {
	for _, e := range effects {
		switch {
		case e.Stop:
			r.stopSteps()
		case len(e.Drop) > 0:
			r.dropSteps(e.Drop)
		case e.Run != nil:
			r.runStep(e.Run)
		case e.Finish:
			r.checkReport(e.Bytes)
		}
	}
}

// runStep runs a step in a goroutine.
func (r *taskActor) runStep(step *researchlog.Step) {
	post := r.shell.Post()
	work, cancel := context.WithCancel(r.work)
	r.running[step.Key] = cancel
	r.steps.Add(1)
	r.host.GoOr(func() {
		defer r.steps.Done()
		defer cancel()
		result, err := r.host.config.Worker.Run(work, &r.claim.Spec, step)
		if err == nil && work.Err() == nil {
			post(stepDone{step.Key, result})
		}
	}, r.steps.Done)
}

// dropSteps stops steps whose results will not be used.
func (r *taskActor) dropSteps(keys []string) {
	for _, key := range keys {
		if cancel := r.running[key]; cancel != nil {
			cancel()
			delete(r.running, key)
		}
	}
}

// stopSteps stops all steps. None starts after that.
func (r *taskActor) stopSteps() {
	r.stop()
	post, stopping := r.shell.Post(), r.host.Context()
	stopped := make(chan struct{})
	r.host.Go(func() {
		defer close(stopped)
		r.steps.Wait()
	})
	r.host.Go(func() {
		wait := time.NewTimer(stopWait)
		defer wait.Stop()
		select {
		case <-stopped:
		case <-wait.C:
		case <-stopping.Done():
			return
		}
		post(stepsStopped{})
	})
}

// checkReport checks whether the report can be stored. While the store is unavailable, it is checked again.
func (r *taskActor) checkReport(bytes int) {
	post, work := r.shell.Post(), r.work
	r.host.Go(func() {
		err := retry.OnStore(work, retry.Unavailable, r.host.unavailable, func() error {
			return r.host.config.Store.CheckReport(work, r.claim.AccountID, r.claim.ConversationID, bytes)
		})
		if work.Err() == nil {
			post(reportChecked{err})
		}
	})
}

// detailOf returns what an error says to the user.
func detailOf(err error) string {
	var known *protocol.Error
	if errors.As(err, &known) && known.Detail != "" {
		return known.Detail
	}
	return "The report could not be stored."
}

// End implements shell.Behavior.
func (r *taskActor) End(shell.Status) { r.stop() }

var _ shell.Behavior = (*taskActor)(nil)
