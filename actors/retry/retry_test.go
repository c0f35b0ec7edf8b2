package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/actors/retry"
	"turnstone/protocol"
)

var (
	errAway    = &protocol.Error{Code: protocol.CodeUnavailable}
	errRefused = &protocol.Error{Code: protocol.CodeConflict}
	errPending = errors.New("not read yet")
)

// tries returns an operation with the given results, and the times since now at which it was tried.
func tries(results ...error) (try func() error, at *[]time.Duration) {
	began := time.Now()
	at = new([]time.Duration)
	return func() error {
		*at = append(*at, time.Since(began))
		return results[min(len(*at), len(results))-1]
	}, at
}

func TestAnOperationIsRepeatedUntilItIsJudgedToBeOver(t *testing.T) {
	judge := func(err error) retry.Verdict {
		if errors.Is(err, errPending) {
			return retry.Wait
		}
		return retry.Unavailable(err)
	}
	for name, c := range map[string]struct {
		results []error
		want    error
		logged  int
	}{
		"success":                        {[]error{nil}, nil, 0},
		"a refusal":                      {[]error{errRefused}, errRefused, 0},
		"an outage, then success":        {[]error{errAway, errAway, errAway, nil}, nil, 1},
		"an outage, then a refusal":      {[]error{errAway, errAway, errRefused}, errRefused, 1},
		"a wait, then success":           {[]error{errPending, errPending, nil}, nil, 0},
		"a wait, then an outage":         {[]error{errPending, errAway, errAway, nil}, nil, 1},
		"an error without a code":        {[]error{context.Canceled}, context.Canceled, 0},
		"an outage between two waits":    {[]error{errPending, errAway, errPending, errAway, nil}, nil, 1},
		"a failure that is wrapped once": {[]error{errors.Join(errAway), nil}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				try, at := tries(c.results...)
				logged := 0
				err := retry.OnStore(t.Context(), judge, func(err error) {
					if logged++; !errors.Is(err, errAway) {
						t.Errorf("logged %v", err)
					}
				}, try)
				if !errors.Is(err, c.want) || len(*at) != len(c.results) || logged != c.logged {
					t.Errorf("%v after %d tries, logged %d times; want %v, %d, %d", err, len(*at), logged, c.want, len(c.results), c.logged)
				}
			})
		})
	}
}

func TestThePausesDoubleUpToASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		try, at := tries(errAway, errAway, errAway, errAway, errAway, errAway, errAway, errAway, nil)
		if err := retry.OnStore(t.Context(), retry.Unavailable, func(error) {}, try); err != nil {
			t.Fatal(err)
		}
		var pauses []time.Duration
		for i, each := range (*at)[1:] {
			pauses = append(pauses, each-(*at)[i])
		}
		const ms = time.Millisecond
		if want := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms, 1000 * ms}; !slices.Equal(pauses, want) {
			t.Errorf("the pauses are %v, want %v", pauses, want)
		}
	})
}

func TestTheEndOfTheContextEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
		defer cancel()
		try, at := tries(errAway)
		began := time.Now()
		err := retry.OnStore(ctx, retry.Unavailable, func(error) {}, try)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || len(*at) != 2 || took != 120*time.Millisecond {
			t.Errorf("%v after %d tries and %s", err, len(*at), took)
		}
	})
}

func TestAPauseLastsAtLeastAsLongAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := retry.Pauses{First: time.Second, Longest: 3 * time.Second}
		for i, c := range []struct{ atLeast, want time.Duration }{
			{0, time.Second}, {time.Minute, time.Minute}, {time.Second, 3 * time.Second}, {0, 3 * time.Second}, {4 * time.Second, 4 * time.Second},
		} {
			began := time.Now()
			if err := pauses.Sleep(t.Context(), c.atLeast); err != nil || time.Since(began) != c.want {
				t.Errorf("pause %d took %s, want %s: %v", i, time.Since(began), c.want, err)
			}
		}
	})
}
