package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
)

// Usage is the CPU time that each part has used so far; own is that of this process, machine that of all processors.
type Usage struct {
	Service, Postgres, Proxy, Sse, model, own, machine time.Duration
}

// CPU reads the CPU time of all parts.
func (s *Site) CPU() (u Usage, err error) {
	var errs [8]error
	u.Postgres, errs[0] = CPUOfFamily(s.Postgres.PID())
	for i, each := range []struct {
		of   *Child
		into *time.Duration
	}{{s.Service, &u.Service}, {s.Proxy, &u.Proxy}, {s.SSE, &u.Sse}, {s.Model, &u.model}} {
		*each.into, errs[i+1] = CPUOf(each.of.PID())
	}
	u.own, errs[5] = CPUOf(os.Getpid())
	u.machine, errs[6] = busy()
	return u, errors.Join(errs[:]...)
}

// Minus returns the CPU time that was used since before.
func (u Usage) Minus(before Usage) Usage {
	return Usage{
		Service: u.Service - before.Service, Postgres: u.Postgres - before.Postgres, Proxy: u.Proxy - before.Proxy,
		Sse: u.Sse - before.Sse, model: u.model - before.model, own: u.own - before.own, machine: u.machine - before.machine,
	}
}

// Others returns the CPU time of all other work on the host computer, including Redis and kernel threads.
func (u Usage) Others() time.Duration {
	return max(0, u.machine-u.Service-u.Postgres-u.Proxy-u.Sse-u.model-u.own)
}

// AwaitQuiet waits until the service and Postgres have finished earlier work and are idle.
func (s *Site) AwaitQuiet(ctx context.Context) error {
	const interval, timeout = 200 * time.Millisecond, 30 * time.Second
	const quiet = 3 * tick // CPU time of lease renewal and connection pools
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		before, err := s.CPU()
		if err != nil {
			return err
		}
		if err := clock.Sleep(ctx, interval); err != nil {
			return fmt.Errorf("the service does not become idle: %w", err)
		}
		after, err := s.CPU()
		if err != nil || after.Service+after.Postgres-before.Service-before.Postgres <= quiet {
			return err
		}
	}
}

// AwaitIdle waits until no turn is live, then until the service and Postgres are idle.
func (s *Site) AwaitIdle(ctx context.Context) error {
	err := load.Until(ctx, load.EndWithin, func() (bool, error) {
		live, err := s.Metric(ctx, "turnstone_turns_live")
		return live == 0, err
	})
	if err != nil {
		return fmt.Errorf("turns do not end: %w", err)
	}
	return s.AwaitQuiet(ctx)
}

// EndAll ends turns until none is live, then waits until the service and Postgres are idle. A turn that started late, or that another
// process has continued, calls the model after EndTurns, so EndTurns alone would leave it running for ever.
func (s *Site) EndAll(ctx context.Context) error {
	err := load.Until(ctx, load.EndWithin, func() (bool, error) {
		live, err := s.Metric(ctx, "turnstone_turns_live")
		if err != nil || live == 0 {
			return err == nil, err
		}
		return false, errors.Join(s.EndTurns(ctx), clock.Sleep(ctx, endInterval))
	})
	if err != nil {
		return fmt.Errorf("turns do not end: %w", err)
	}
	return s.AwaitQuiet(ctx)
}

// endInterval is the time between two calls of EndTurns.
const endInterval = 200 * time.Millisecond

// SinceLast returns the CPU time used since before. A process with less time than before is a new one, and all of its
// time counts.
func (u Usage) SinceLast(before Usage) Usage {
	if u.Service < before.Service {
		before.Service = 0
	}
	if u.Postgres < before.Postgres {
		before.Postgres = 0
	}
	return u.Minus(before)
}
