//go:build failpoint

package failpoint

import (
	"cmp"
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

// maxSleep limits the action sleep. Use kill for a step that never happens.
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

// arming is the configured action of one point.
type arming struct {
	action action
	at     int // the hit at which the action happens; 0: every hit
	sleep  time.Duration
	stage  Stage // for which term waits
	hits   int   // number of hits so far: calls of After for executed, calls of Before for all other actions
	fired  int   // number of times that the action happened
}

var state struct {
	mu    sync.Mutex
	armed map[Point]*arming       // guarded by mu
	fail  func(point Point) error // guarded by mu
}

// stages has a channel for each stage that Reached closes.
var stages = map[Stage]*gate{Draining: newGate(), Released: newGate()}

type gate struct {
	open func()
	done chan struct{}
}

func newGate() *gate {
	done := make(chan struct{})
	return &gate{open: sync.OnceFunc(func() { close(done) }), done: done}
}

// Reached reports that the shutdown has reached a stage.
func Reached(stage Stage) { stages[stage].open() }

// SetErrorFunc sets the function that creates injected errors, so that an injected error has the same error code as a
// real one. Without it, injected errors have no code.
func SetErrorFunc(with func(point Point) error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.fail = with
}

// Arm replaces the configuration of all points with spec: name=action[:duration or stage][@hit], separated by semicolons.
// Without @hit the action happens at the first hit, with @* at every hit. An empty spec disarms all points.
//
//	turn.after_claim=kill;lease.before_renew=sleep:1500ms@3;journal.before_append=executed@*
func Arm(spec string) error {
	armed := map[Point]*arming{}
	for item := range strings.SplitSeq(spec, ";") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, text, _ := strings.Cut(item, "=")
		parsed, err := parse(text)
		if err != nil {
			return fmt.Errorf("failpoint %q: %w", item, err)
		}
		if !slices.Contains(Points, Point(name)) {
			return fmt.Errorf("failpoint %q: unknown point", name)
		}
		armed[Point(name)] = parsed
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	state.armed = armed
	return nil
}

func parse(text string) (*arming, error) {
	text, hit, numbered := strings.Cut(text, "@")
	name, argument, _ := strings.Cut(text, ":")
	a := &arming{action: action(name), at: 1}
	var err error
	switch a.action {
	case actKill, actError, actExecuted, actPanic:
	case actTerm:
		if a.stage = Stage(cmp.Or(argument, string(Draining))); stages[a.stage] == nil {
			return nil, errors.New("invalid stage (want draining or released)")
		}
	case actSleep:
		if a.sleep, err = time.ParseDuration(argument); err != nil {
			return nil, err
		}
		a.sleep = min(a.sleep, maxSleep)
	default:
		return nil, errors.New("invalid action (want kill, term, error, executed, sleep:<duration> or panic)")
	}
	switch {
	case hit == "*":
		a.at = 0
	case numbered:
		if a.at, err = strconv.Atoi(hit); err != nil || a.at < 1 {
			return nil, errors.New("invalid hit (want a number from 1, or *)")
		}
	}
	return a, nil
}

// Fired returns, for each armed point, the number of times that its action happened.
func Fired() map[Point]int {
	state.mu.Lock()
	defer state.mu.Unlock()
	fired := map[Point]int{}
	for point, a := range state.armed {
		fired[point] = a.fired
	}
	return fired
}

// Before is called before a step. When it returns an error, the caller must not run the step.
func Before(point Point) error {
	a, fail := hit(point, false)
	if a == nil {
		return nil
	}
	return a.perform(point, fail)
}

// After is called after a step with the step's error, and returns the error that the caller must use.
func After(point Point, err error) error {
	if err != nil {
		return err
	}
	if a, fail := hit(point, true); a != nil {
		return injected(point, fail)
	}
	return nil
}

// Respond is Before and After for the response to a client; err is the result of the request so far.
func Respond(point Point, err error) error {
	if err != nil {
		return err
	}
	if err := Before(point); err != nil {
		return err
	}
	if After(point, nil) != nil {
		panic(http.ErrAbortHandler) // the request was processed, and the client sees a broken connection
	}
	return nil
}

// hit counts a hit and returns the arming of the point if its action happens now, else nil. done is false before the
// step and true after it: executed happens after the step, every other action before it.
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

// perform performs an action that happens before the step. It returns the injected error, or nil when the step may run.
func (a *arming) perform(point Point, fail func(Point) error) error {
	switch a.action {
	case actKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail for this process
		select {}
	case actTerm:
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // cannot fail for this process
		<-stages[a.stage].done
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
