package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnstone/cmd/loadtest/site"
	"turnstone/protocol/clock"
)

// resources are the resources that the service's process uses.
type resources struct {
	RSS         int64 `json:"rss_bytes"`
	PSS         int64 `json:"pss_bytes"`
	Heap        int64 `json:"heap_in_use_bytes"`
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
	Postgres    int   `json:"postgres_connections"`
	Redis       int   `json:"redis_connections"`

	// Processors is the processor time per second at rest; 0 in samples under load, which have Service.
	Processors float64 `json:"processors_at_rest,omitempty"`
}

// readVitals returns the resources that the service's process uses.
func (k *soak) readVitals(ctx context.Context) (v resources, err error) {
	pid := k.site.Service.PID()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return v, err
	}
	var errs [6]error
	v.RSS, errs[0] = site.ParseMemory(text, "Rss:")
	v.PSS, errs[1] = site.ParseMemory(text, "Pss:")
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	v.Descriptors, errs[2] = len(entries), err
	metrics, err := k.site.Metrics(ctx)
	if err != nil {
		return v, err
	}
	v.Goroutines, v.Heap = int(metrics["go_goroutines"]), int64(metrics["go_memstats_heap_inuse_bytes"])
	for name, value := range metrics {
		if strings.HasPrefix(name, "turnstone_database_connections{") {
			v.Postgres += int(value)
		}
	}
	v.Redis, errs[3] = redisClients(ctx, k.site.Redis.URL())
	return v, errors.Join(errs[:]...)
}

// restWindow is the time over which the use of processors at rest is measured.
const restWindow = 2 * time.Second

// readAtRest returns the resources of a service that has nothing to do, with its use of the processors.
func (k *soak) readAtRest(ctx context.Context) (v resources, err error) {
	pid := k.site.Service.PID()
	before, err := site.CPUOf(pid)
	if err != nil {
		return v, err
	}
	began := time.Now()
	if err := clock.Sleep(ctx, restWindow); err != nil {
		return v, err
	}
	after, err := site.CPUOf(pid)
	over := time.Since(began)
	if err != nil {
		return v, err
	}
	v, err = k.readVitals(ctx)
	v.Processors = (after - before).Seconds() / over.Seconds()
	return v, err
}

// redisClients returns the number of connections to a Redis, without its own.
func redisClients(ctx context.Context, address string) (int, error) {
	at, err := url.Parse(address)
	if err != nil {
		return 0, err
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", at.Path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte("INFO clients\r\n")); err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if count, found := strings.CutPrefix(lines.Text(), "connected_clients:"); found {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			return n - 1, err
		}
	}
	return 0, errors.New("redis did not report connected_clients")
}

// busyAtRest is how many processors the service may use at rest. It uses 0.01 to 0.03.
const busyAtRest = 0.3

// leaks lists the resources that did not return to their level before the run, and reports a service that is busy at rest.
func leaks(before, after resources) (list []string) {
	for _, each := range []struct {
		name          string
		before, after int
	}{
		{"goroutines", before.Goroutines, after.Goroutines},
		{"descriptors", before.Descriptors, after.Descriptors},
		{"Postgres connections", before.Postgres, after.Postgres},
		{"Redis connections", before.Redis, after.Redis},
	} {
		if each.after > each.before+restTolerance {
			list = append(list, fmt.Sprintf("%d %s at rest, %d before", each.after, each.name, each.before))
		}
	}
	if after.Processors > busyAtRest {
		list = append(list, fmt.Sprintf("%.2f processors are used at rest", after.Processors))
	}
	return list
}

const (
	// slowRequest is the duration that at least half of the requests of every route must not exceed, in seconds. It is a limit
	// of a bucket of the metric.
	slowRequest = 1
	// leastRequests is the number of requests from which a route is judged.
	leastRequests = 5
)

var requestCount = regexp.MustCompile(`^turnstone_http_request_seconds_count\{(method="([A-Z]+)",route="([^"]+)",status="2xx")\}$`)

// slowRoutes lists the routes of which most successful requests took longer than slowRequest. metrics are those of the last
// process.
func slowRoutes(metrics map[string]float64) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		found, count := requestCount.FindStringSubmatch(name), metrics[name]
		if found == nil || count < leastRequests {
			continue
		}
		if fast := metrics[fmt.Sprintf(`turnstone_http_request_seconds_bucket{%s,le="%d"}`, found[1], slowRequest)]; fast < count/2 {
			list = append(list, fmt.Sprintf("%s %s: %.0f of %.0f requests took more than %d s", found[2], found[3], count-fast, count, slowRequest))
		}
	}
	return list
}
