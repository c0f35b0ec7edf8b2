package shell

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

// registryBuckets is the number of buckets of protoactor's registry of actors; each has 32 maps, with a lock each. With
// the default of 1,024 buckets there are 32,768 maps, which take 2.9 MB while they are empty, and 9 MB more after each
// of them has contained an actor, that is after about 100,000 turns.
const registryBuckets = 32

// NewSystem creates the system that runs the actors of a node. It logs errors only.
func NewSystem(log *zap.Logger) *actor.ActorSystem {
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
		for id, process := range bucket.Items() { // the processes of the system itself
			processes.GetBucket(id).Set(id, process)
		}
	}
	return system
}
