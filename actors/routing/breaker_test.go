package routing

import (
	"testing"
	"time"
)

func TestARouteThatFailsIsNotUsedForATime(t *testing.T) {
	routes := []Route{{Name: "first", Model: "m"}, {Name: "second", Model: "m"}}
	var breakers Breakers
	now := time.Unix(1, 0)
	want := func(index int, why string) {
		t.Helper()
		if got := breakers.Choose(routes, 0, now); got != index {
			t.Errorf("%s: route %d, want %d", why, got, index)
		}
	}
	for range failuresToOpen {
		want(0, "closed")
		breakers.Failed(routes[0], false, now)
	}
	want(1, "open")
	now = now.Add(openFor)
	want(0, "one call tries the route")
	want(1, "only one")
	breakers.Failed(routes[0], false, now)
	want(1, "the trial failed")
	now = now.Add(openFor)
	want(0, "the next trial")
	breakers.Succeeded(routes[0])
	want(0, "closed again")

	breakers.Failed(routes[0], true, now)
	want(1, "a lasting failure")
	breakers.Failed(routes[1], true, now)
	want(-1, "all are open")
}
