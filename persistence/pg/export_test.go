package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// LockRetries is how often a transaction is tried again after a lock timeout.
const LockRetries = lockRetries

// Quiet is the check that the pools run before they hand out a connection.
func Quiet(ctx context.Context, conn *pgx.Conn) (bool, error) { return socketIdle(ctx, conn) }

// MigrateTo migrates the schema to a version that may be older than the current one.
func MigrateTo(ctx context.Context, ownerURL string, version int32) error {
	config, err := ownerConfig(ownerURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	migrator, err := newMigrator(ctx, conn)
	if err != nil {
		return err
	}
	return migrator.MigrateTo(ctx, version)
}

// NumberBatcher groups numbers, for the tests of Batcher.
type NumberBatcher struct{ g Batcher[int] }

// NewNumberBatcher creates a NumberBatcher; see Batcher for its parameters.
func NewNumberBatcher(maxInFlight, maxGroup int, maxWait time.Duration, work func(group []int)) *NumberBatcher {
	return &NumberBatcher{Batcher[int]{MaxInFlight: maxInFlight, MaxGroup: maxGroup, MaxWait: maxWait, Work: work}}
}

// Add submits a number.
func (g *NumberBatcher) Add(item int) { g.g.Add(item) }

// LookUpTogether looks up numbers as one group. find simulates a round trip for some of the numbers: if it returns nil,
// the result of each is its double; an error or a panic fails all of them.
func LookUpTogether(find func(some []int) error, numbers ...int) (results []int, failures []error) {
	group := make([]*Lookup[int, int], len(numbers))
	for i, n := range numbers {
		group[i] = &Lookup[int, int]{Key: n, done: make(chan struct{})}
	}
	NewLookups(func(_ context.Context, some []*Lookup[int, int]) error {
		keys := make([]int, len(some))
		for i, q := range some {
			keys[i], q.Result = q.Key, 2*q.Key
		}
		return find(keys)
	}).Work(group)
	for _, q := range group {
		<-q.done
		results, failures = append(results, q.Result), append(failures, q.err)
	}
	return results, failures
}
