package promises

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

	"turnstone/cmd/loadtest/goals"
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
func (r *run) outages(ctx context.Context) error {
	redis, postgres := r.site.Redis, r.site.Postgres
	kinds := []outage{
		{"Redis stopped", "cache", goals.RedisLimit, redis.Stop, redis.Start},
		{"Postgres stopped", "persistence", goals.PostgresLimit, postgres.StopAtOnce, postgres.Start},
		{
			"Redis frozen", "cache", goals.RedisLimit,
			func(context.Context) error { return redis.Pause() }, func(context.Context) error { return redis.Resume() },
		},
		{
			"Postgres frozen", "persistence", "",
			func(context.Context) error { return postgres.Pause() }, func(context.Context) error { return postgres.Resume() },
		},
	}
	requests, err := r.requests(ctx)
	if err != nil {
		return err
	}
	for range r.pick(5, 1) {
		for _, o := range kinds[:r.pick(len(kinds), 2)] {
			if err := r.outage(ctx, o, requests); err != nil {
				return fmt.Errorf("%s: %w", o.cause, err)
			}
		}
	}
	return nil
}

// dependent is a request that is refused without its dependencies.
type dependent struct {
	client.Request
	redis bool // it needs Redis; every request needs Postgres
}

// requests returns the requests for each node, which are of a different account at each.
func (r *run) requests(ctx context.Context) (byNode [nodes][]dependent, err error) {
	for node := range byNode {
		var made protocol.Conversation
		creation := client.Request{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Limits"}}
		if err := r.via[node][node].Do(ctx, creation, &made); err != nil {
			return byNode, err
		}
		path := "/conversations/" + made.ConversationID.String()
		byNode[node] = []dependent{
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
func (r *run) outage(ctx context.Context, o outage, requests [nodes][]dependent) error {
	if err := r.eachNode(ctx, func(ctx context.Context, i int, node *site.Node, add func(string, time.Duration)) error {
		return respondIdle(ctx, r.via[i][i], node, requests[i], o.limit, add)
	}, r.addIdle); err != nil {
		return err
	}
	occurred := func(id string, took time.Duration) { r.add(id, o.cause, took) }
	began := time.Now()
	if err := o.inject(ctx); err != nil {
		return err
	}
	err := r.eachNode(ctx, func(ctx context.Context, i int, node *site.Node, add func(string, time.Duration)) error {
		var both errgroup.Group
		both.Go(func() error {
			took, err := awaitReadiness(ctx, node, began, func(got readiness) bool {
				return got.checks[o.check] == "down" && got.status == http.StatusServiceUnavailable
			})
			add(goals.ReadyLimit, took)
			return err
		})
		both.Go(func() error { return refuse(ctx, r.via[i][i], requests[i], o.limit, add) })
		return both.Wait()
	}, occurred)
	err = errors.Join(err, o.repair(ctx))
	if err != nil {
		return err
	}
	began = time.Now()
	return r.eachNode(ctx, func(ctx context.Context, _ int, node *site.Node, add func(string, time.Duration)) error {
		took, err := awaitReadiness(ctx, node, began, func(got readiness) bool { return got.status == http.StatusOK })
		add(goals.RecoveryLimit, took)
		return err
	}, occurred)
}

// eachNode calls do for all nodes concurrently. What do adds is passed on one after the other.
func (r *run) eachNode(
	ctx context.Context, do func(ctx context.Context, i int, node *site.Node, add func(string, time.Duration)) error, add func(string, time.Duration),
) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for i, node := range r.cluster.Nodes {
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
func respondIdle(ctx context.Context, api *client.Client, node *site.Node, requests []dependent, limit string, add func(string, time.Duration)) error {
	for _, d := range requests {
		status, took, err := respond(ctx, api, d.Request)
		if err != nil {
			return err
		}
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return fmt.Errorf("%s %s without a fault: %d", d.Method, d.Path, status)
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
	add(goals.ReadyLimit, time.Since(began))
	add(goals.RecoveryLimit, time.Since(began))
	return nil
}

// refuse sends the requests that are refused in an outage with a promised time.
func refuse(ctx context.Context, api *client.Client, requests []dependent, limit string, add func(string, time.Duration)) error {
	for _, d := range requests {
		if limit == "" || limit == goals.RedisLimit && !d.redis {
			continue
		}
		status, took, err := respond(ctx, api, d.Request)
		if err != nil {
			return err
		}
		if status != http.StatusServiceUnavailable {
			return fmt.Errorf("%s %s: %d, want 503", d.Method, d.Path, status)
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
	err := load.Until(ctx, within, func() (_ bool, err error) {
		last, err = readReadiness(ctx, node)
		return wanted(last), err
	})
	if err != nil {
		return 0, fmt.Errorf("/ready is %+v: %w", last, err)
	}
	return time.Since(began), nil
}
