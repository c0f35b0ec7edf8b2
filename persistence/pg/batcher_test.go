package pg_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// groups provides a work function that sends each group to started and then blocks until it receives from proceed.
type groups struct {
	started chan []int
	proceed chan struct{}
}

func newGroups() *groups {
	return &groups{started: make(chan []int, 16), proceed: make(chan struct{}, 16)}
}

func (g *groups) work(group []int) {
	g.started <- group
	<-g.proceed
}

// wantStarted checks that work was called with these groups and no others.
func (g *groups) wantStarted(t *testing.T, want ...[]int) {
	t.Helper()
	synctest.Wait()
	for _, group := range want {
		select {
		case got := <-g.started:
			if !slices.Equal(got, group) {
				t.Errorf("the group is %v, want %v", got, group)
			}
		default:
			t.Errorf("group %v did not start", group)
		}
	}
	select {
	case got := <-g.started:
		t.Errorf("group %v started", got)
	default:
	}
}

func TestItemsDuringARoundTripShareTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups()
		batcher := pg.NewNumberBatcher(2, 10, time.Second, g.work)
		batcher.Add(1)
		g.wantStarted(t, []int{1})
		for n := range 3 {
			batcher.Add(n + 2)
		}
		g.wantStarted(t)
		g.proceed <- struct{}{}
		g.wantStarted(t, []int{2, 3, 4})
		g.proceed <- struct{}{}
		g.wantStarted(t)
		batcher.Add(5)
		g.wantStarted(t, []int{5})
		g.proceed <- struct{}{}
	})
}

func TestAHangingRoundTripDelaysOthersForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups()
		batcher := pg.NewNumberBatcher(3, 10, time.Second, g.work)
		batcher.Add(1)
		g.wantStarted(t, []int{1})
		batcher.Add(2)
		<-time.After(time.Second - 1) // on the clock of the synctest bubble
		batcher.Add(3)
		g.wantStarted(t)
		<-time.After(1)
		g.wantStarted(t, []int{2, 3})
		batcher.Add(4) // its own wait counts, not that of the items before it
		<-time.After(time.Second - 1)
		g.wantStarted(t)
		<-time.After(1)
		g.wantStarted(t, []int{4})
		batcher.Add(5) // all groups that may be in flight hang
		<-time.After(time.Minute)
		g.wantStarted(t)
		g.proceed <- struct{}{}
		g.wantStarted(t, []int{5})
		for range 3 {
			g.proceed <- struct{}{}
		}
	})
}

func TestAFullGroupStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups()
		batcher := pg.NewNumberBatcher(2, 2, time.Second, g.work)
		batcher.Add(1)
		g.wantStarted(t, []int{1})
		batcher.Add(2)
		batcher.Add(3)
		g.wantStarted(t, []int{2, 3})
		for n := range 3 {
			batcher.Add(n + 4)
		}
		g.wantStarted(t)
		g.proceed <- struct{}{}
		g.wantStarted(t, []int{4, 5})
		g.proceed <- struct{}{}
		g.wantStarted(t, []int{6})
		g.proceed <- struct{}{}
		g.proceed <- struct{}{}
	})
}

var errOutage = &protocol.Error{Code: protocol.CodeUnavailable}

func TestALookupThatFailsASharedRoundTripFailsAlone(t *testing.T) {
	const hostile = 3
	for name, broken := range map[string]func() error{
		"fails":  func() error { return errors.New("no") },
		"panics": func() error { panic("no") },
	} {
		trips := 0
		results, failures := pg.LookUpTogether(func(some []int) error {
			trips++
			if slices.Contains(some, hostile) {
				return broken()
			}
			return nil
		}, 1, 2, hostile, 4)
		for i, n := range []int{1, 2, hostile, 4} {
			if n == hostile && failures[i] == nil || n != hostile && (failures[i] != nil || results[i] != 2*n) {
				t.Errorf("%s: the result of %d is %d, %v", name, n, results[i], failures[i])
			}
		}
		if trips != 5 {
			t.Errorf("%s: %d round trips", name, trips)
		}
	}
}

// While the server is unavailable, every lookup of a group fails at once. None is tried again.
func TestAnOutageOfASharedRoundTripIsNotRetried(t *testing.T) {
	for name, c := range map[string]struct {
		failures []error // of the round trips in order
		trips    int
	}{
		"from the beginning": {[]error{errOutage}, 1},
		"while repeating":    {[]error{errors.New("no"), errors.New("no"), errOutage}, 3},
	} {
		trips := 0
		_, failures := pg.LookUpTogether(func([]int) error {
			trips++
			return c.failures[min(trips, len(c.failures))-1]
		}, 1, 2, 3, 4)
		if trips != c.trips {
			t.Errorf("%s: %d round trips", name, trips)
		}
		for i, err := range failures[trips-1:] {
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				t.Errorf("%s: the result of %d is %v", name, i+trips, err)
			}
		}
	}
}
