package shell

import (
	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// Runtime runs the actors of a node, of all kinds. Its methods may be called from any goroutine.
type Runtime struct {
	system     *actor.ActorSystem
	dispatcher *Dispatcher
}

// NewRuntime returns a runtime without actors, with at most workers goroutines that run them; see NewDispatcher. Close
// ends it.
func NewRuntime(log *zap.Logger, workers int) *Runtime {
	return &Runtime{system: NewSystem(log), dispatcher: NewDispatcher(workers)}
}

// Spawn starts an actor. Its name is prefix and a number.
func (r *Runtime) Spawn(prefix string, s *Shell) *actor.PID {
	props := actor.PropsFromProducer(func() actor.Actor { return s }, actor.WithDispatcher(r.dispatcher))
	return r.system.Root.SpawnPrefix(props, prefix)
}

// Send sends a message to an actor, and never blocks.
func (r *Runtime) Send(to *actor.PID, message any) { r.system.Root.Send(to, message) }

// Stop asks an actor to stop at once. Shell.Stopped reports when it has.
func (r *Runtime) Stop(actor *actor.PID) { r.system.Root.Stop(actor) }

// Close ends the runtime, once all actors have stopped.
func (r *Runtime) Close() {
	r.system.Shutdown()
	r.dispatcher.Close()
}
