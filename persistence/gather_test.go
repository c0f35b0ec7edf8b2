package persistence_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/persistence"
)

// groups is a worker that shows each group and works until it is told to go on.
type groups struct {
	begun chan []int
	goOn  chan struct{}
}

func newGroups() *groups { return &groups{begun: make(chan []int, 16), goOn: make(chan struct{}, 16)} }

func (g *groups) work(group []int) {
	g.begun <- group
	<-g.goOn
}

// shows holds that these groups, and no others, have begun.
func (g *groups) shows(t *testing.T, want ...[]int) {
	t.Helper()
	synctest.Wait()
	for _, group := range want {
		select {
		case got := <-g.begun:
			if !slices.Equal(got, group) {
				t.Errorf("the group is %v, want %v", got, group)
			}
		default:
			t.Errorf("%v did not begin", group)
		}
	}
	select {
	case got := <-g.begun:
		t.Errorf("%v began", got)
	default:
	}
}

func TestWhatComesDuringATripSharesTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups()
		gather := persistence.NewGather(2, 10, time.Second, g.work)
		gather.Add(1)
		g.shows(t, []int{1})
		for n := range 3 {
			gather.Add(n + 2)
		}
		g.shows(t)
		g.goOn <- struct{}{}
		g.shows(t, []int{2, 3, 4})
		g.goOn <- struct{}{}
		g.shows(t)
		gather.Add(5)
		g.shows(t, []int{5})
		g.goOn <- struct{}{}
	})
}

func TestATripThatHangsHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups()
		gather := persistence.NewGather(3, 10, time.Second, g.work)
		gather.Add(1)
		g.shows(t, []int{1})
		gather.Add(2)
		<-time.After(time.Second - 1) // of the bubble's clock
		gather.Add(3)
		g.shows(t)
		<-time.After(1)
		g.shows(t, []int{2, 3})
		gather.Add(4) // its own patience counts, not that of those before it
		<-time.After(time.Second - 1)
		g.shows(t)
		<-time.After(1)
		g.shows(t, []int{4})
		gather.Add(5) // all that may hang do
		<-time.After(time.Minute)
		g.shows(t)
		g.goOn <- struct{}{}
		g.shows(t, []int{5})
		for range 3 {
			g.goOn <- struct{}{}
		}
	})
}

func TestAWholeGroupWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups()
		gather := persistence.NewGather(2, 2, time.Second, g.work)
		gather.Add(1)
		g.shows(t, []int{1})
		gather.Add(2)
		gather.Add(3)
		g.shows(t, []int{2, 3})
		for n := range 3 {
			gather.Add(n + 4)
		}
		g.shows(t)
		g.goOn <- struct{}{}
		g.shows(t, []int{4, 5})
		g.goOn <- struct{}{}
		g.shows(t, []int{6})
		g.goOn <- struct{}{}
		g.goOn <- struct{}{}
	})
}
