package turn

import (
	"context"
	"strings"
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// twoRoutes gives every profile the routes first and second.
func twoRoutes(c *testConfig) {
	for profile, routes := range c.Routes {
		first, second := routes[0], routes[0]
		first.Name, first.Model, second.Name, second.Model = "first", "one", "second", "two"
		c.Routes[profile] = []routing.Route{first, second}
	}
}

// routed is a model with an answer for each route. It notes the routes of its calls.
func routed(calls *[]string, answers map[string]func(llm.Request, func(llm.Chunk) error) error) *llmtest.Script {
	return &llmtest.Script{Play: func(_ context.Context, _ int, request llm.Request, emit func(llm.Chunk) error) error {
		*calls = append(*calls, request.Route)
		return answers[request.Route](request, emit)
	}}
}

func refuses(failure llm.Error) func(llm.Request, func(llm.Chunk) error) error {
	return func(llm.Request, func(llm.Chunk) error) error { return &failure }
}

func TestTheNextRouteAnswersWhileTheFirstFails(t *testing.T) {
	for _, failure := range []llm.Error{
		{Code: protocol.ModelUnavailable},
		{Code: protocol.ModelUnauthorized, Lasting: true},
		{Code: protocol.ModelCreditUsedUp, Lasting: true},
		{Code: protocol.ModelRejected},
		{Code: protocol.ModelUnauthorized},
		{Code: protocol.ModelCreditUsedUp},
	} {
		code := failure.Code
		var calls []string
		store := actorstest.NewMemory()
		n := startNode(t, store, routed(&calls, map[string]func(llm.Request, func(llm.Chunk) error) error{
			"first": refuses(failure), "second": stops(say("fine")),
		}), twoRoutes)
		for range 2 {
			spec := startTurn(t, n, "hi")
			frames := string(read(t, n, spec, 0, nil))
			finish := store.Turns[spec.TurnID].Finishes[0]
			if finish.ModelID != "two" || len(finish.Parts) != 1 || finish.Parts[0].Text != "fine" || strings.Count(frames, `"type":"turn.routing"`) != 2 {
				t.Errorf("%s: by %s: %s", code, finish.ModelID, frames)
			}
			if at, first := strings.LastIndex(frames, "turn.routing"), strings.Index(frames, "answer.started"); at > first || !strings.Contains(frames, `so another one answers.","route":2`) {
				t.Errorf("%s: %s", code, frames)
			}
		}
		want := "first second first second"
		if failure.Lasting {
			want = "first second second" // the breaker of the first is open
		}
		if got := strings.Join(calls, " "); got != want {
			t.Errorf("%s: calls %s, want %s", code, got, want)
		}
	}
}

func TestATurnDoesNotChangeItsRouteAfterItsFirstOutput(t *testing.T) {
	var calls []string
	cut := func(_ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(say("Hal")); err != nil {
			return err
		}
		return &llm.Error{Code: protocol.ModelUnavailable, Cut: true}
	}
	store := actorstest.NewMemory()
	n := startNode(t, store, routed(&calls, map[string]func(llm.Request, func(llm.Chunk) error) error{"first": cut, "second": stops(say("fine"))}), twoRoutes)
	spec := startTurn(t, n, "hi")
	frames := string(read(t, n, spec, 0, nil))
	if got := strings.Join(calls, " "); got != "first first" || strings.Count(frames, `"type":"turn.routing"`) != 1 {
		t.Errorf("calls %s: %s", got, frames)
	}
}

func TestEveryRouteThatFailsEndsTheTurn(t *testing.T) {
	var calls []string
	store := actorstest.NewMemory()
	n := startNode(t, store, routed(&calls, map[string]func(llm.Request, func(llm.Chunk) error) error{
		"first": refuses(llm.Error{Code: protocol.ModelCreditUsedUp, Lasting: true}), "second": refuses(llm.Error{Code: protocol.ModelUnauthorized, Lasting: true}),
	}), twoRoutes)
	for range 2 {
		spec := startTurn(t, n, "hi")
		read(t, n, spec, 0, nil)
		if err := store.Turns[spec.TurnID].Finishes[0].Error; err == nil {
			t.Error("the turn did not fail")
		}
	}
	if got := strings.Join(calls, " "); got != "first second first" {
		t.Errorf("calls %s", got)
	}
}

func TestABusyProviderIsWaitedForOnlyWithoutAnotherRoute(t *testing.T) {
	var waits []bool
	notes := func(end func(llm.Request, func(llm.Chunk) error) error) func(llm.Request, func(llm.Chunk) error) error {
		return func(request llm.Request, emit func(llm.Chunk) error) error {
			waits = append(waits, !request.Deadline.IsZero())
			return end(request, emit)
		}
	}
	var calls []string
	n := startNode(t, actorstest.NewMemory(), routed(&calls, map[string]func(llm.Request, func(llm.Chunk) error) error{
		"first": notes(refuses(llm.Error{Code: protocol.ModelRateLimited})), "second": notes(stops(say("fine"))),
	}), twoRoutes)
	read(t, n, startTurn(t, n, "hi"), 0, nil)
	if len(waits) != 2 || waits[0] || !waits[1] {
		t.Errorf("%s: %v", calls, waits)
	}
}

// What a provider answers to the requests of one account does not close its route for the others.
func TestUnusableAnswersCloseNoRoute(t *testing.T) {
	var calls []string
	n := startNode(t, actorstest.NewMemory(), routed(&calls, map[string]func(llm.Request, func(llm.Chunk) error) error{
		"first": refuses(llm.Error{Code: protocol.ModelUnavailable, Unusable: true}), "second": stops(say("fine")),
	}), twoRoutes)
	for range 4 {
		read(t, n, startTurn(t, n, "hi"), 0, nil)
	}
	if got := strings.Join(calls, " "); got != "first second first second first second first second" {
		t.Errorf("calls %s", got)
	}
}

// A request may be the cause when nothing answers it, for example because it is huge. It does not close a route for others.
func TestFailuresOfOneAccountCloseTheRouteForItAlone(t *testing.T) {
	var calls []string
	n := startNode(t, actorstest.NewMemory(), routed(&calls, map[string]func(llm.Request, func(llm.Chunk) error) error{
		"first": refuses(llm.Error{Code: protocol.ModelUnavailable, Pending: true}), "second": stops(say("fine")),
	}), twoRoutes)
	ask := func(account protocol.AccountID) {
		result, err := n.StartTurn(t.Context(), &turnlog.Start{AccountID: account, Input: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		read(t, n, result.Spec, 0, nil)
	}
	ada, bob := protocol.NewAccountID(), protocol.NewAccountID()
	for range 4 {
		ask(ada)
	}
	ask(bob)
	ask(bob) // the second failure of other accounts, without a success in between
	ask(protocol.NewAccountID())
	if got := strings.Join(calls, " "); got != "first second first second first second second first second first second second" {
		t.Errorf("calls %s", got)
	}
}
