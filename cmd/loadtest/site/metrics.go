package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"turnstone/cmd/loadtest/load"
)

// Metric returns the value of one of the service's metrics.
func (s *Site) Metric(ctx context.Context, name string) (float64, error) {
	all, err := s.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	value, found := all[name]
	if !found {
		return 0, fmt.Errorf("the service has no metric %s", name)
	}
	return value, nil
}

// Metrics returns all of the service's metrics, keyed by their names with labels.
func (s *Site) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := load.Fetch(ctx, http.MethodGet, "http://"+s.Internal+"/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil {
			all[line[:at]] = value
		}
	}
	return all, nil
}

// LiveHeap makes the service collect garbage, and returns the bytes that are live. A heap profile with debug=1 contains
// the size of the heap from before the profile was written, so the garbage from writing it, some MB, is not included.
func (s *Site) LiveHeap(ctx context.Context) (float64, error) {
	var text []byte
	for range 2 { // the second collection frees what finalizers released
		var err error
		if text, err = load.Fetch(ctx, http.MethodGet, "http://"+s.Internal+"/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	for line := range strings.Lines(string(text)) {
		if bytes, found := strings.CutPrefix(line, "# HeapAlloc = "); found {
			return strconv.ParseFloat(strings.TrimSpace(bytes), 64)
		}
	}
	return 0, errors.New("the heap profile does not contain the size of the heap")
}

// Profile takes a CPU profile of the service over a duration and writes it to a file.
func (s *Site) Profile(ctx context.Context, over time.Duration, to string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.Internal, max(1, int(over.Seconds()))), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: over + load.CallTimeout}).Do(request)
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
