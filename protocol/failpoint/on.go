//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxSleep bounds a sleep: a step that never comes is what kill is for.
const maxSleep = 30 * time.Second

type action string

const (
	actKill     action = "kill"
	actTerm     action = "term"
	actError    action = "error"
	actExecuted action = "executed"
	actSleep    action = "sleep"
	actPanic    action = "panic"
)

// arming is what one point does.
type arming struct {
	action action
	at     int // the hit that fails; 0: every one
	sleep  time.Duration
	hits   int // so far, of the kind that the action looks at
	fired  int
}

var state struct {
	mu    sync.Mutex
	armed map[Point]*arming       // guarded by mu
	fail  func(point Point) error // guarded by mu
}

// Fails sets how an injected error is made, so that it has the meaning that a real one has. Without it it has none.
func Fails(with func(point Point) error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.fail = with
}

// Arm replaces all that is armed by spec: name=action[:duration][@hit], separated by semicolons. The first hit fails if
// none is named, every one with @*. An empty spec arms nothing.
//
//	turn.after_claim=kill;lease.before_renew=sleep:1500ms@3;journal.before_append=executed@*
func Arm(spec string) error {
	armed := map[Point]*arming{}
	for one := range strings.SplitSeq(spec, ";") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, what, _ := strings.Cut(one, "=")
		parsed, err := parse(what)
		if err != nil {
			return fmt.Errorf("failpoint %q: %w", one, err)
		}
		if !slices.Contains(Points, Point(name)) {
			return fmt.Errorf("failpoint %q: there is no such point", name)
		}
		armed[Point(name)] = parsed
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	state.armed = armed
	return nil
}

func parse(what string) (*arming, error) {
	what, hit, numbered := strings.Cut(what, "@")
	name, length, _ := strings.Cut(what, ":")
	a := &arming{action: action(name), at: 1}
	var err error
	switch a.action {
	case actKill, actTerm, actError, actExecuted, actPanic:
	case actSleep:
		if a.sleep, err = time.ParseDuration(length); err != nil {
			return nil, err
		}
		a.sleep = min(a.sleep, maxSleep)
	default:
		return nil, errors.New("kill, term, error, executed, sleep:<duration> or panic is wanted")
	}
	switch {
	case hit == "*":
		a.at = 0
	case numbered:
		if a.at, err = strconv.Atoi(hit); err != nil || a.at < 1 {
			return nil, errors.New("the hit is a number from 1, or *")
		}
	}
	return a, nil
}

// Fired counts how often each armed point has failed.
func Fired() map[Point]int {
	state.mu.Lock()
	defer state.mu.Unlock()
	fired := map[Point]int{}
	for point, a := range state.armed {
		fired[point] = a.fired
	}
	return fired
}

// Before is where a point stands. Its error means: do not do the step.
func Before(point Point) error {
	a, fail := hit(point, false)
	if a == nil {
		return nil
	}
	return a.strike(point, fail)
}

// After takes what came of the step.
func After(point Point, err error) error {
	if err != nil {
		return err
	}
	if a, fail := hit(point, true); a != nil {
		return injected(point, fail)
	}
	return nil
}

// Answer is Before and After of an answer to a client, where err is what came of the request so far.
func Answer(point Point, err error) error {
	if err != nil {
		return err
	}
	if err := Before(point); err != nil {
		return err
	}
	if After(point, nil) != nil {
		panic(http.ErrAbortHandler) // all was done, and the client sees a connection that breaks
	}
	return nil
}

// hit counts, and answers what is to be done now, if anything is. executed strikes after the step, all else before it.
func hit(point Point, done bool) (*arming, func(Point) error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	a := state.armed[point]
	if a == nil || (a.action == actExecuted) != done {
		return nil, nil
	}
	if a.hits++; a.at != 0 && a.hits != a.at {
		return nil, nil
	}
	a.fired++
	return a, state.fail
}

func (a *arming) strike(point Point, fail func(Point) error) error {
	switch a.action {
	case actKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // never fails for oneself
		select {}
	case actTerm:
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // never fails for oneself
		return nil
	case actPanic:
		panic("failpoint " + string(point))
	case actSleep:
		<-time.After(a.sleep)
		return nil
	}
	return injected(point, fail)
}

func injected(point Point, fail func(Point) error) error {
	if fail == nil {
		return fmt.Errorf("failpoint %s", point)
	}
	return fail(point)
}
