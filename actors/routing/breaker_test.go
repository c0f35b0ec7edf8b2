package routing

import (
	"testing"
	"time"

	"turnstone/protocol"
)

func TestARouteThatFailsIsNotUsedForATime(t *testing.T) {
	routes := []Route{{Name: "first", Model: "m"}, {Name: "second", Model: "m"}}
	ada, bob := protocol.NewAccountID(), protocol.NewAccountID()
	var breakers Breakers
	now := time.Unix(1, 0)
	want := func(index int, account protocol.AccountID, why string) {
		t.Helper()
		if got := breakers.Choose(routes, 0, account, now); got != index {
			t.Errorf("%s: route %d, want %d", why, got, index)
		}
	}
	for range failuresToOpen {
		want(0, ada, "closed")
		breakers.Failed(routes[0], ada, false, now)
	}
	want(1, ada, "open")
	want(0, bob, "the failures of another account")
	breakers.Succeeded(routes[0], bob)
	want(1, ada, "the success of another account")
	now = now.Add(openFor)
	want(0, ada, "one call tries the route")
	want(1, ada, "only one")
	breakers.Failed(routes[0], ada, false, now)
	want(1, ada, "the trial failed")
	now = now.Add(openFor)
	want(0, ada, "the next trial")
	breakers.Succeeded(routes[0], ada)
	want(0, ada, "closed again")

	breakers.Failed(routes[0], ada, false, now)
	breakers.Failed(routes[0], bob, false, now)
	want(0, ada, "closed")
	breakers.Succeeded(routes[0], bob)
	breakers.Failed(routes[0], ada, false, now)
	breakers.Failed(routes[0], bob, false, now)
	want(0, bob, "a success in between, and one failure of another account")
	breakers.Failed(routes[0], bob, false, now)
	want(1, protocol.NewAccountID(), "failures of several accounts")
	now = now.Add(openFor)
	want(0, protocol.NewAccountID(), "one call of any account tries the route")
	want(1, protocol.NewAccountID(), "only one")
	breakers.Succeeded(routes[0], ada)

	breakers.Failed(routes[0], ada, true, now)
	want(1, bob, "a lasting failure")
	breakers.Failed(routes[1], ada, true, now)
	want(-1, bob, "all are open")
}

func TestBreakersAreFew(t *testing.T) {
	var breakers Breakers
	route, now := Route{Name: "first"}, time.Unix(1, 0)
	for range maxBreakers + 10 {
		breakers.Failed(route, protocol.NewAccountID(), false, now)
	}
	if n := len(breakers.failed); n != maxBreakers {
		t.Errorf("%d breakers", n)
	}
	now = now.Add(2 * openFor)
	last := protocol.NewAccountID()
	for range failuresToOpen {
		breakers.Failed(route, last, false, now)
	}
	if n := len(breakers.failed); n > 2 {
		t.Errorf("%d breakers after their time", n)
	}
	if got := breakers.Choose([]Route{route}, 0, last, now); got != -1 {
		t.Errorf("route %d", got)
	}
}
