package shell

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestStoppedActorsLeaveNothingInTheRegistry compares the heap after some actors with the heap after many.
func TestStoppedActorsLeaveNothingInTheRegistry(t *testing.T) {
	const some, many, most = 1000, 100_000, 1 << 20
	system := NewSystem(zap.NewNop(), zap.ErrorLevel)
	if _, ok := system.ProcessRegistry.GetLocal("deadletter"); !ok {
		t.Fatal("the system has no process for dead letters")
	}
	dispatcher := NewDispatcher(runtime.GOMAXPROCS(0))
	props := actor.PropsFromFunc(func(actor.Context) {}, actor.WithDispatcher(dispatcher))
	heapAfter := func(n int) (bytes uint64) {
		for range n {
			pid := system.Root.SpawnPrefix(props, "turn")
			if err := system.Root.StopFuture(pid).Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second one frees what finalizers released
			runtime.GC()
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	before := heapAfter(some)
	after := heapAfter(many)
	if after > before+most {
		t.Errorf("%d bytes after %d actors, %d after %d more", before, some, after, many)
	}
	dispatcher.Close()
	runtime.KeepAlive(system)
}

func TestTheSystemLogsNoMessages(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	logger := NewSystem(zap.New(core), zap.ErrorLevel).Logger()
	const canary = "the text of a turn"
	logger.Error("failed", "message", canary, "reason", canary, "exception", canary, "address", "node:1")
	logger.With("message", canary).Error("failed")
	logger.Info("quiet", "address", "node:1")
	lines := logs.All()
	if len(lines) != 2 {
		t.Fatalf("%d lines were logged, want 2: only errors are", len(lines))
	}
	for _, line := range lines {
		if text := fmt.Sprint(line.ContextMap()); strings.Contains(text, canary) {
			t.Errorf("the log has content: %s", text)
		}
	}
	if lines[0].ContextMap()["address"] != "node:1" {
		t.Error("the other attributes are lost")
	}
}
