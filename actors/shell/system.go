package shell

import (
	"context"
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// registryBuckets is the number of buckets of protoactor's registry of actors; each has 32 maps, with a lock each. With
// the default of 1,024 buckets there are 32,768 maps, which take 2.9 MB while they are empty, and 9 MB more after each
// of them has contained an actor, that is after about 100,000 turns.
const registryBuckets = 32

// NewSystem creates the system that runs the actors of a node. It logs from a level on.
func NewSystem(log *zap.Logger, level zapcore.LevelEnabler) *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(withoutContent{zapslog.NewHandler(log.WithOptions(zap.IncreaseLevel(level)).Core(), zapslog.AddStacktraceAt(slog.LevelError+1))})
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

// withoutContent drops the attributes in which protoactor logs messages and panics: they can have the content of turns.
type withoutContent struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withoutContent) Handle(ctx context.Context, r slog.Record) error {
	safe := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if !slices.Contains(contentAttributes, a.Key) {
			safe.AddAttrs(a)
		}
		return true
	})
	return h.Handler.Handle(ctx, safe)
}

// WithAttrs implements slog.Handler.
func (h withoutContent) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutContent{h.Handler.WithAttrs(slices.DeleteFunc(slices.Clone(attrs), func(a slog.Attr) bool { return slices.Contains(contentAttributes, a.Key) }))}
}

// WithGroup implements slog.Handler.
func (h withoutContent) WithGroup(name string) slog.Handler {
	return withoutContent{h.Handler.WithGroup(name)}
}

var contentAttributes = []string{"message", "reason", "exception"}
