//go:build failpoint

package failpoint

import (
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

var errInjected = errors.New("injected error")

func arm(t *testing.T, spec string) {
	t.Helper()
	SetErrorFunc(func(Point) error { return errInjected })
	t.Cleanup(func() { _ = Arm("") })
	if err := Arm(spec); err != nil {
		t.Fatal(err)
	}
}

func TestTheNamedHitFailsAndNoOther(t *testing.T) {
	arm(t, "lease.before_renew=error@2; turn.before_claim=error@*")
	for hit := 1; hit <= 3; hit++ {
		if failed := Before(LeaseBeforeRenew) != nil; failed != (hit == 2) {
			t.Errorf("hit %d of error@2: failed is %t", hit, failed)
		}
		if Before(TurnBeforeClaim) == nil {
			t.Errorf("hit %d of error@* does not fail", hit)
		}
		if After(LeaseBeforeRenew, nil) != nil || Before(TurnAfterClaim) != nil {
			t.Error("a point that is not armed fails, or the action error fails after the step")
		}
	}
	if fired := Fired(); fired[LeaseBeforeRenew] != 1 || fired[TurnBeforeClaim] != 3 {
		t.Errorf("Fired returned %v, want 1 for %s and 3 for %s", fired, LeaseBeforeRenew, TurnBeforeClaim)
	}
}

func TestExecutedFailsAfterTheStepOnly(t *testing.T) {
	arm(t, "tx.before_commit=executed")
	if Before(TxBeforeCommit) != nil {
		t.Error("the action executed prevents the step")
	}
	if err := After(TxBeforeCommit, http.ErrNotSupported); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("the error of the step itself became %v", err)
	}
	if err := After(TxBeforeCommit, nil); !errors.Is(err, errInjected) {
		t.Errorf("After returned %v for a step that ran, want the injected error", err)
	}
}

func TestAnExecutedResponseAbortsTheConnection(t *testing.T) {
	arm(t, "steer.after_commit_before_202=executed")
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("Respond panics with %v, want http.ErrAbortHandler", got)
		}
	}()
	_ = Respond(SteerAfterCommit, nil)
}

func TestASleepEndsAndIsLimited(t *testing.T) {
	arm(t, "lease.before_renew=sleep:1ms")
	if err := Before(LeaseBeforeRenew); err != nil {
		t.Error(err)
	}
	if slow, err := parse("sleep:5h"); err != nil || slow.sleep != maxSleep || maxSleep > time.Minute {
		t.Errorf("sleep:5h is parsed as %+v, %v; want a sleep of %s", slow, err, maxSleep)
	}
}

func TestTermSendsSIGTERMAndRunsTheStepAtItsStage(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	defer signal.Stop(signals)
	for action, stage := range map[string]Stage{"term": Draining, "term:released": Released} {
		stages[stage] = newGate()
		arm(t, "lease.before_renew="+action)
		ran := make(chan error, 1)
		go func() { ran <- Before(LeaseBeforeRenew) }()
		<-signals
		select {
		case err := <-ran:
			t.Fatalf("%s: the step runs before its stage: %v", action, err)
		default:
		}
		Reached(stage)
		Reached(stage)
		if err := <-ran; err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if err := After(LeaseBeforeRenew, nil); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
}

func TestAnInvalidSpecCannotBeArmed(t *testing.T) {
	for _, spec := range []string{"nowhere=kill", "lease.before_renew", "lease.before_renew=explode", "lease.before_renew=kill@0", "lease.before_renew=sleep", "lease.before_renew=term:later"} {
		if Arm(spec) == nil {
			t.Errorf("%q was armed", spec)
		}
	}
}
