package actors

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

// registryBuckets is how many buckets protoactor's registry of actors gets; each has 32 maps with a lock each. The 1,024
// buckets that it comes with make 32,768 maps: 2.9 MB while they are empty, and 9 MB more once each has held an actor,
// which takes some 100,000 turns.
const registryBuckets = 32

// newActorSystem makes the system in which the actors of a node live. It logs errors only.
func newActorSystem(log *zap.Logger) *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(zapslog.NewHandler(log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel)).Core()))
	}))
	processes := system.ProcessRegistry.LocalPIDs
	all := processes.LocalPIDs
	processes.LocalPIDs = make([]cmap.ConcurrentMap, registryBuckets)
	for i := range processes.LocalPIDs {
		processes.LocalPIDs[i] = cmap.New()
	}
	for _, bucket := range all {
		if bucket.IsEmpty() {
			continue
		}
		for id, process := range bucket.Items() { // those of the system itself
			processes.GetBucket(id).Set(id, process)
		}
	}
	return system
}
