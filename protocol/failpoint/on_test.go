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

var errMade = errors.New("made to fail")

func arm(t *testing.T, spec string) {
	t.Helper()
	Fails(func(Point) error { return errMade })
	t.Cleanup(func() { _ = Arm("") })
	if err := Arm(spec); err != nil {
		t.Fatal(err)
	}
}

func TestTheNamedHitFailsAndNoOther(t *testing.T) {
	arm(t, "lease.before_renew=error@2; turn.before_claim=error@*")
	for hit := 1; hit <= 3; hit++ {
		if failed := Before(LeaseBeforeRenew) != nil; failed != (hit == 2) {
			t.Errorf("hit %d failed: %t", hit, failed)
		}
		if Before(TurnBeforeClaim) == nil {
			t.Errorf("hit %d of every one does not fail", hit)
		}
		if After(LeaseBeforeRenew, nil) != nil || Before(TurnAfterClaim) != nil {
			t.Error("something fails that is not armed")
		}
	}
	if fired := Fired(); fired[LeaseBeforeRenew] != 1 || fired[TurnBeforeClaim] != 3 {
		t.Errorf("fired %v", fired)
	}
}

func TestExecutedFailsAfterTheStepOnly(t *testing.T) {
	arm(t, "tx.before_commit=executed")
	if Before(TxBeforeCommit) != nil {
		t.Error("the step was kept from being done")
	}
	if err := After(TxBeforeCommit, http.ErrNotSupported); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("a failure of the step itself became %v", err)
	}
	if err := After(TxBeforeCommit, nil); !errors.Is(err, errMade) {
		t.Errorf("the step, which was done, is reported as %v", err)
	}
}

func TestAnAnswerIsMadeAndLost(t *testing.T) {
	arm(t, "steer.after_commit_before_202=executed")
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("it panics with %v", got)
		}
	}()
	_ = Answer(SteerAfterCommit, nil)
}

func TestASleepIsOver(t *testing.T) {
	arm(t, "lease.before_renew=sleep:1ms")
	if err := Before(LeaseBeforeRenew); err != nil {
		t.Error(err)
	}
	if slow, err := parse("sleep:5h"); err != nil || slow.sleep != maxSleep || maxSleep > time.Minute {
		t.Errorf("%+v %v", slow, err)
	}
}

func TestTheStepIsDoneWhileTheProcessIsToldToStop(t *testing.T) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	defer signal.Stop(told)
	arm(t, "lease.before_renew=term")
	if err := Before(LeaseBeforeRenew); err != nil {
		t.Error(err)
	}
	if err := After(LeaseBeforeRenew, nil); err != nil {
		t.Error(err)
	}
	<-told
}

func TestWhatIsNoPointCannotBeArmed(t *testing.T) {
	for _, spec := range []string{"nowhere=kill", "lease.before_renew", "lease.before_renew=explode", "lease.before_renew=kill@0", "lease.before_renew=sleep"} {
		if Arm(spec) == nil {
			t.Errorf("%q was armed", spec)
		}
	}
}
