package shell

import (
	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Runtime runs the actors of a node, of all kinds. Its methods may be called from any goroutine.
type Runtime struct {
	system     *actor.ActorSystem
	dispatcher *Dispatcher
	level      zap.AtomicLevel // from which on protoactor logs
}

// NewRuntime returns a runtime without actors, with at most workers goroutines that run them; see NewDispatcher. Close
// ends it.
func NewRuntime(log *zap.Logger, workers int) *Runtime {
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	return &Runtime{system: NewSystem(log, level), dispatcher: NewDispatcher(workers), level: level}
}

// Silence ends protoactor's own log: connections that are closed at the end of a process are not errors.
func (r *Runtime) Silence() { r.level.SetLevel(zapcore.FatalLevel + 1) }

// Spawn starts an actor. Its name is prefix and a number.
func (r *Runtime) Spawn(prefix string, s *Shell) *actor.PID {
	props := actor.PropsFromProducer(func() actor.Actor { return s }, actor.WithDispatcher(r.dispatcher))
	return r.system.Root.SpawnPrefix(props, prefix)
}

// SpawnFunc starts an actor with a name. receive is called with every message, one at a time, and must not block.
func (r *Runtime) SpawnFunc(name string, receive actor.ReceiveFunc) (*actor.PID, error) {
	return r.system.Root.SpawnNamed(actor.PropsFromFunc(receive, actor.WithDispatcher(r.dispatcher)), name)
}

// System returns the system of the actors, for package remote.
func (r *Runtime) System() *actor.ActorSystem { return r.system }

// Send sends a message to an actor, and never blocks.
func (r *Runtime) Send(to *actor.PID, message any) { r.system.Root.Send(to, message) }

// Stop asks an actor to stop at once. Shell.Stopped reports when it has.
func (r *Runtime) Stop(actor *actor.PID) { r.system.Root.Stop(actor) }

// Close ends the runtime, once all actors have stopped.
func (r *Runtime) Close() {
	r.system.Shutdown()
	r.dispatcher.Close()
}
