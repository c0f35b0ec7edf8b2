package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
)

// faultKind is a kind of fault that is injected into the service or its dependencies.
type faultKind struct {
	name    string
	restart bool // the service has another process afterwards
	refuses bool // the service may return 5xx during the fault
	weight  int
	inject  func(injector, context.Context, time.Duration) error
}

// faultKinds are all kinds of faults. Those that end the service's process occur only in the first part of a run, so
// that a single process runs through the rest of it and its memory can be judged.
var faultKinds = []faultKind{
	{"kill -9", true, true, 6, injector.killService},
	{"SIGTERM", true, true, 4, injector.endService},
	{"SIGSTOP", false, true, 4, injector.pauseService},
	{"Postgres stopped immediately", false, true, 4, injector.crashPostgres},
	{"Redis stopped", false, true, 2, injector.stopRedis},
	{"Redis frozen", false, true, 2, injector.freezeRedis},
	{"model connections reset", false, false, 3, injector.resetModel},
	{"client connections cut", false, false, 3, injector.cutClients},
}

// unexpectedExit is the end of a service process that no fault caused.
var unexpectedExit = &faultKind{name: "the service ended unexpectedly", refuses: true}

const (
	// restartShare is the first part of a run, as a share of it, in which faults may restart the service.
	restartShare = 0.3
	// settleAfter is how long after its end a fault still accounts for refusals.
	settleAfter = 3 * time.Second
	leastFault  = time.Second
	mostFault   = 5 * time.Second
	redisFault  = 2 * time.Second
)

// plannedFault is a fault with its time since the start of the run, and its length if its kind has one.
type plannedFault struct {
	at     time.Duration
	kind   *faultKind
	length time.Duration
}

// planFaults draws the faults of a run. The same seed gives the same faults.
func planFaults(seed uint64, over, every time.Duration) []plannedFault {
	random := rand.New(rand.NewPCG(seed, 1))
	var plan []plannedFault
	for at := every; at+every/2 < over; at += every {
		early := float64(at) < restartShare*float64(over)
		sum := 0
		for i := range faultKinds {
			if early || !faultKinds[i].restart {
				sum += faultKinds[i].weight
			}
		}
		drawn := random.IntN(sum)
		length := leastFault + time.Duration(random.Int64N(int64(mostFault-leastFault)))
		for i := range faultKinds {
			kind := &faultKinds[i]
			if kind.restart && !early {
				continue
			}
			if drawn -= kind.weight; drawn < 0 {
				plan = append(plan, plannedFault{at: at, kind: kind, length: length})
				break
			}
		}
	}
	return plan
}

// faultWindows records when faults were active, in times of the host computer's clock.
type faultWindows struct {
	mu        sync.Mutex
	all       []faultWindow // guarded by mu
	calmSince atomic.Int64  // when the last fault and its settleAfter are over
}

// calm reports whether the period from due until now is outside all faults, and outside the settleAfter that follows
// each.
func (w *faultWindows) calm(due int64) bool { return due >= w.calmSince.Load() }

type faultWindow struct {
	kind       *faultKind
	begin, end int64 // end is 0 while the fault lasts
}

func (w *faultWindows) open(kind *faultKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, faultWindow{kind: kind, begin: load.Monotonic()})
	w.calmSince.Store(math.MaxInt64)
}

// close ends the newest window and returns its length.
func (w *faultWindows) close() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	newest := &w.all[len(w.all)-1]
	newest.end = load.Monotonic()
	w.calmSince.Store(newest.end + int64(settleAfter))
	return time.Duration(newest.end - newest.begin)
}

// overlaps reports whether a period overlaps a fault or the settleAfter that follows it, and whether one of those
// faults allows refusals.
func (w *faultWindows) overlaps(from, to int64) (fault, refuses bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.all) - 1; i >= 0; i-- { // newest first, since callers ask about recent times
		one := w.all[i]
		if one.end != 0 && one.end+int64(settleAfter) < from {
			if one.end+int64(time.Minute) < from {
				break
			}
			continue
		}
		if one.begin <= to {
			fault, refuses = true, refuses || one.kind.refuses
		}
	}
	return fault, refuses
}

// injector injects faults into the site of a soak.
type injector struct{ *soak }

// faults injects the planned faults one after the other and watches the service in between. A service that ends
// unexpectedly is a breach, and is started again.
func (k injector) faults(ctx context.Context, plan []plannedFault) error {
	begun := time.Now()
	for _, planned := range plan {
		if err := k.waitAndRestart(ctx, begun.Add(planned.at)); err != nil {
			return err
		}
		k.faultWindows.open(planned.kind)
		err := planned.kind.inject(k, ctx, planned.length)
		took := k.faultWindows.close()
		if err != nil {
			return fmt.Errorf("%s: %w", planned.kind.name, err)
		}
		k.recordFault(planned, took)
	}
	return k.waitAndRestart(ctx, begun.Add(k.command.For))
}

// waitAndRestart waits until a time, and restarts the service if it ends unexpectedly.
func (k injector) waitAndRestart(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-k.site.Service.Done():
			k.breach(lostKind, "the service ended unexpectedly: %s", k.site.Service.Err())
			k.faultWindows.open(unexpectedExit)
			err := k.startService(ctx)
			k.faultWindows.close()
			if err != nil {
				return err
			}
		}
	}
}

func (k injector) startService(ctx context.Context) error {
	k.processes.Lock()
	defer k.processes.Unlock()
	_, err := k.site.StartService(ctx)
	k.restarted()
	return err
}

func (k injector) killService(ctx context.Context, _ time.Duration) error {
	k.site.Service.Kill()
	return k.startService(ctx)
}

func (k injector) endService(ctx context.Context, _ time.Duration) error {
	if err := k.site.Service.Stop(); err != nil {
		return err
	}
	return k.startService(ctx)
}

func (k injector) pauseService(ctx context.Context, length time.Duration) error {
	if err := syscall.Kill(k.site.Service.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	err := clock.Sleep(ctx, length)
	return errors.Join(err, syscall.Kill(k.site.Service.PID(), syscall.SIGCONT))
}

func (k injector) crashPostgres(ctx context.Context, length time.Duration) error {
	k.processes.Lock()
	defer k.processes.Unlock()
	if err := k.site.Postgres.StopAtOnce(ctx); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, length/2); err != nil {
		return err
	}
	return k.site.Postgres.Start(ctx)
}

func (k injector) stopRedis(ctx context.Context, _ time.Duration) error {
	if err := k.site.Redis.Stop(ctx); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, redisFault); err != nil {
		return err
	}
	return k.site.Redis.Start(ctx)
}

func (k injector) freezeRedis(ctx context.Context, _ time.Duration) error {
	if err := k.site.Redis.Pause(); err != nil {
		return err
	}
	err := clock.Sleep(ctx, redisFault)
	return errors.Join(err, k.site.Redis.Resume())
}

func (k injector) resetModel(ctx context.Context, _ time.Duration) error {
	_, err := load.Fetch(ctx, http.MethodPost, "http://"+k.site.Model.Address+"/reset")
	return err
}

func (k injector) cutClients(context.Context, time.Duration) error {
	k.connections.cut()
	return nil
}
