package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// outage is a fault of a dependency.
type outage struct {
	cause, check   string // check is its name in /ready
	limit          string // the goal of requests that are refused meanwhile; "": their time is not promised
	inject, repair func(context.Context) error
}

// outages measures how long the refusal of a request takes while Redis or Postgres is away, and how long /ready takes to
// report that and to recover, at every node. Before each outage the same requests are sent without a fault.
func (b *limitBench) outages(ctx context.Context) error {
	redis, postgres := b.site.Redis, b.site.Postgres
	kinds := []outage{
		{"Redis stopped", "cache", redisLimit, redis.Stop, redis.Start},
		{"Postgres stopped", "persistence", postgresLimit, postgres.StopAtOnce, postgres.Start},
		{
			"Redis frozen", "cache", redisLimit,
			func(context.Context) error { return redis.Pause() }, func(context.Context) error { return redis.Resume() },
		},
		{
			"Postgres frozen", "persistence", "",
			func(context.Context) error { return postgres.Pause() }, func(context.Context) error { return postgres.Resume() },
		},
	}
	requests, err := b.limitRequests(ctx)
	if err != nil {
		return err
	}
	for range b.pickCount(5, 1) {
		for _, o := range kinds[:b.pickCount(len(kinds), 2)] {
			if err := b.outage(ctx, o, requests); err != nil {
				return fmt.Errorf("%s: %w", o.cause, err)
			}
		}
	}
	return nil
}

// limitRequest is a request that is refused without its dependencies.
type limitRequest struct {
	client.Request
	redis bool // it needs Redis; every request needs Postgres
}

// limitRequests returns the requests for each node, which are of a different account at each.
func (b *limitBench) limitRequests(ctx context.Context) (byNode [limitNodes][]limitRequest, err error) {
	for node := range byNode {
		var made protocol.Conversation
		creation := client.Request{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Limits"}}
		if err := b.via[node][node].Do(ctx, creation, &made); err != nil {
			return byNode, err
		}
		path := "/conversations/" + made.ConversationID.String()
		byNode[node] = []limitRequest{
			{creation, true},
			{client.Request{Method: http.MethodGet, Path: path}, false},
			{client.Request{Method: http.MethodPut, Path: path + "/title", Body: map[string]string{"title": "Limits"}}, true},
			{client.Request{Method: http.MethodPost, Path: "/chat", Body: client.ChatRequest{Input: client.Text(load.Script{Tokens: 1}.String())}}, true},
			{client.Request{Method: http.MethodDelete, Path: "/conversations/" + protocol.NewConversationID().String()}, true},
		}
	}
	return byNode, nil
}

// outage measures one outage at all nodes concurrently.
func (b *limitBench) outage(ctx context.Context, o outage, requests [limitNodes][]limitRequest) error {
	if err := b.eachNode(ctx, func(ctx context.Context, i int, node *site.Node, add func(string, time.Duration)) error {
		return b.respondIdle(ctx, b.via[i][i], node, requests[i], o.limit, add)
	}, b.addIdle); err != nil {
		return err
	}
	occurred := func(id string, took time.Duration) { b.add(id, o.cause, took) }
	began := time.Now()
	if err := o.inject(ctx); err != nil {
		return err
	}
	err := b.eachNode(ctx, func(ctx context.Context, i int, node *site.Node, add func(string, time.Duration)) error {
		var both errgroup.Group
		both.Go(func() error {
			took, err := awaitReadiness(ctx, node, began, func(r readiness) bool {
				return r.checks[o.check] == "down" && r.status == http.StatusServiceUnavailable
			})
			add(readyLimit, took)
			return err
		})
		both.Go(func() error { return b.refuse(ctx, b.via[i][i], requests[i], o.limit, add) })
		return both.Wait()
	}, occurred)
	err = errors.Join(err, o.repair(ctx))
	if err != nil {
		return err
	}
	began = time.Now()
	return b.eachNode(ctx, func(ctx context.Context, _ int, node *site.Node, add func(string, time.Duration)) error {
		took, err := awaitReadiness(ctx, node, began, func(r readiness) bool { return r.status == http.StatusOK })
		add(recoveryLimit, took)
		return err
	}, occurred)
}

// eachNode calls do for all nodes concurrently. What do adds is passed on one after the other.
func (b *limitBench) eachNode(
	ctx context.Context, do func(ctx context.Context, i int, node *site.Node, add func(string, time.Duration)) error, add func(string, time.Duration),
) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for i, node := range b.site.Nodes {
		group.Go(func() error {
			return do(ctx, i, node, func(id string, took time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				add(id, took)
			})
		})
	}
	return group.Wait()
}

// respondIdle sends the requests without a fault, and reads /ready. No request may be refused.
func (b *limitBench) respondIdle(ctx context.Context, api *client.Client, node *site.Node, requests []limitRequest, limit string, add func(string, time.Duration)) error {
	for _, r := range requests {
		status, took, err := respond(ctx, api, r.Request)
		if err != nil {
			return err
		}
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return fmt.Errorf("%s %s without a fault: %d", r.Method, r.Path, status)
		}
		if limit != "" {
			add(limit, took)
		}
	}
	began := time.Now()
	r, err := readReadiness(ctx, node)
	if err != nil {
		return err
	}
	if r.status != http.StatusOK {
		return fmt.Errorf("/ready without a fault: %+v", r)
	}
	add(readyLimit, time.Since(began))
	add(recoveryLimit, time.Since(began))
	return nil
}

// refuse sends the requests that are refused in an outage with a promised time.
func (b *limitBench) refuse(ctx context.Context, api *client.Client, requests []limitRequest, limit string, add func(string, time.Duration)) error {
	for _, r := range requests {
		if limit == "" || limit == redisLimit && !r.redis {
			continue
		}
		status, took, err := respond(ctx, api, r.Request)
		if err != nil {
			return err
		}
		if status != http.StatusServiceUnavailable {
			return fmt.Errorf("%s %s: %d, want 503", r.Method, r.Path, status)
		}
		add(limit, took)
	}
	return nil
}

// respond sends a request and returns the status of the response and the time until its header was read.
func respond(ctx context.Context, api *client.Client, r client.Request) (status int, took time.Duration, err error) {
	if r.Method == http.MethodPost {
		r.IdempotencyKey = client.NewKey()
	}
	began := time.Now()
	response, err := api.Open(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, took, errors.Join(err, response.Body.Close())
}

// readiness is a response of /ready.
type readiness struct {
	status int
	checks map[string]string
}

func readReadiness(ctx context.Context, node *site.Node) (r readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, load.CallTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+node.Internal+"/ready", nil)
	if err != nil {
		return r, err
	}
	response, err := load.Transport.RoundTrip(request)
	if err != nil {
		return r, err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or its error is returned
	var body struct{ Checks map[string]string }
	err = json.NewDecoder(response.Body).Decode(&body)
	return readiness{response.StatusCode, body.Checks}, err
}

// awaitReadiness polls /ready of a node until it responds as wanted, and returns the time since began.
func awaitReadiness(ctx context.Context, node *site.Node, began time.Time, wanted func(readiness) bool) (time.Duration, error) {
	var last readiness
	err := load.Until(ctx, limitWithin, func() (_ bool, err error) {
		last, err = readReadiness(ctx, node)
		return wanted(last), err
	})
	if err != nil {
		return 0, fmt.Errorf("/ready is %+v: %w", last, err)
	}
	return time.Since(began), nil
}
