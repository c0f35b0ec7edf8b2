package actors

import (
	"runtime"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// TestActorsThatHaveLivedLeaveNothingInTheRegistry looks at the heap after some and after many actors.
func TestActorsThatHaveLivedLeaveNothingInTheRegistry(t *testing.T) {
	const some, many, most = 1000, 100_000, 1 << 20
	system := newActorSystem(zap.NewNop())
	if _, ok := system.ProcessRegistry.GetLocal("deadletter"); !ok {
		t.Fatal("the system has lost its dead letters")
	}
	dispatcher := newDispatcher()
	props := actor.PropsFromFunc(func(actor.Context) {}, actor.WithDispatcher(dispatcher))
	live := func(n int) (heap uint64) {
		for range n {
			pid := system.Root.SpawnPrefix(props, "turn")
			if err := system.Root.StopFuture(pid).Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // what finalizers free goes with the second
			runtime.GC()
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	before := live(some)
	after := live(many)
	if after > before+most {
		t.Errorf("%d bytes after %d actors, %d after %d more", before, some, after, many)
	}
	dispatcher.close()
	runtime.KeepAlive(system)
}
