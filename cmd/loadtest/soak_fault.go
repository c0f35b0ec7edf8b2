package main

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
)

// faultKind is something that is done to the service or to what it needs.
type faultKind struct {
	name    string
	restart bool // the service's process is another one afterwards
	refuses bool // the service may answer 5xx while it lasts
	weight  int
	strike  func(*soak, context.Context, time.Duration) error
}

// faultKinds: those that end the process come only in the beginning of a run, so that one process lives through the rest
// of it and its memory can be judged.
var faultKinds = []faultKind{
	{"kill -9", true, true, 6, (*soak).killService},
	{"SIGTERM", true, true, 4, (*soak).endService},
	{"SIGSTOP", false, true, 4, (*soak).pauseService},
	{"Postgres stopped at once", false, true, 4, (*soak).crashPostgres},
	{"Redis stopped", false, true, 2, (*soak).stopRedis},
	{"Redis frozen", false, true, 2, (*soak).freezeRedis},
	{"model connections reset", false, false, 3, (*soak).resetModel},
	{"client connections cut", false, false, 3, (*soak).cutClients},
}

// unwanted is the end of a service that nobody ended.
var unwanted = &faultKind{name: "the service ended by itself", refuses: true}

const (
	// restartShare is the first part of a run, in which the service may be ended and started again.
	restartShare = 0.3
	// settleAfter is how long after a fault a refusal still belongs to it.
	settleAfter = 3 * time.Second
	leastFault  = time.Second
	mostFault   = 5 * time.Second
	redisFault  = 2 * time.Second
)

// plannedFault is when something happens and how long it lasts, if its kind lasts.
type plannedFault struct {
	at     time.Duration
	kind   *faultKind
	length time.Duration
}

// planFaults draws the faults of a run: the same for the same seed.
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

// windows remembers when faults were at work, by the machine's clock.
type windows struct {
	mu        sync.Mutex
	all       []faultWindow // guarded by mu
	calmSince atomic.Int64  // the time of the last fault and what follows it is over
}

// calm tells whether no fault is at work or near, for what was due at a time and happens now.
func (w *windows) calm(due int64) bool { return due >= w.calmSince.Load() }

type faultWindow struct {
	kind       *faultKind
	begin, end int64 // end 0: it lasts
}

func (w *windows) open(kind *faultKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, faultWindow{kind: kind, begin: monotonic()})
	w.calmSince.Store(math.MaxInt64)
}

// close ends the newest and answers how long it was.
func (w *windows) close() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	newest := &w.all[len(w.all)-1]
	newest.end = monotonic()
	w.calmSince.Store(newest.end + int64(settleAfter))
	return time.Duration(newest.end - newest.begin)
}

// touches tells whether a time lies in a fault or the seconds after it, and whether in one that may be refused in.
func (w *windows) touches(from, to int64) (fault, refuses bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.all) - 1; i >= 0; i-- { // the newest faults are what is asked for
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

// faults strikes as planned, one after the other, and looks after the service between: one that ends by itself is a
// breach, and is started again.
func (k *soak) faults(ctx context.Context, plan []plannedFault) error {
	begun := time.Now()
	for _, planned := range plan {
		if err := k.watchUntil(ctx, begun.Add(planned.at)); err != nil {
			return err
		}
		k.windows.open(planned.kind)
		err := planned.kind.strike(k, ctx, planned.length)
		took := k.windows.close()
		if err != nil {
			return fmt.Errorf("%s: %w", planned.kind.name, err)
		}
		k.struck(planned, took)
	}
	return k.watchUntil(ctx, begun.Add(k.command.For))
}

// watchUntil waits, with an eye on the service.
func (k *soak) watchUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-k.site.service.done:
			k.breach(lostKind, "the service ended by itself: %s", k.site.service.cmd.ProcessState)
			k.windows.open(unwanted)
			err := k.startService(ctx)
			k.windows.close()
			if err != nil {
				return err
			}
		}
	}
}

func (k *soak) startService(ctx context.Context) error {
	k.processes.Lock()
	defer k.processes.Unlock()
	_, err := k.site.startService(ctx)
	k.restarted()
	return err
}

func (k *soak) killService(ctx context.Context, _ time.Duration) error {
	_ = syscall.Kill(-k.site.service.pid(), syscall.SIGKILL) // gone already is what is wanted
	<-k.site.service.done
	return k.startService(ctx)
}

func (k *soak) endService(ctx context.Context, _ time.Duration) error {
	if err := k.site.service.stop(); err != nil {
		return err
	}
	return k.startService(ctx)
}

func (k *soak) pauseService(ctx context.Context, length time.Duration) error {
	if err := syscall.Kill(k.site.service.pid(), syscall.SIGSTOP); err != nil {
		return err
	}
	err := wait(ctx, length)
	return errors.Join(err, syscall.Kill(k.site.service.pid(), syscall.SIGCONT))
}

func (k *soak) crashPostgres(ctx context.Context, length time.Duration) error {
	k.processes.Lock()
	defer k.processes.Unlock()
	if err := k.site.postgres.StopAtOnce(ctx); err != nil {
		return err
	}
	if err := wait(ctx, length/2); err != nil {
		return err
	}
	return k.site.postgres.Start(ctx)
}

func (k *soak) stopRedis(ctx context.Context, _ time.Duration) error {
	if err := k.site.redis.Stop(ctx); err != nil {
		return err
	}
	if err := wait(ctx, redisFault); err != nil {
		return err
	}
	return k.site.redis.Start(ctx)
}

func (k *soak) freezeRedis(ctx context.Context, _ time.Duration) error {
	if err := k.site.redis.Pause(); err != nil {
		return err
	}
	err := wait(ctx, redisFault)
	return errors.Join(err, k.site.redis.Resume())
}

func (k *soak) resetModel(ctx context.Context, _ time.Duration) error {
	_, err := call(ctx, http.MethodPost, "http://"+k.site.model.address+"/reset", nil, nil, http.StatusOK, nil)
	return err
}

func (k *soak) cutClients(context.Context, time.Duration) error {
	k.lines.cut()
	return nil
}
