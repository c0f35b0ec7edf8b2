package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clock"
)

// uploadBench measures uploads.
type uploadBench struct{ *bench }

// uploads measures P13: the speed and the memory of a large upload, and how much many uploads delay the tokens of live
// turns.
func (b uploadBench) uploads(ctx context.Context) error {
	return errors.Join(b.largeUpload(ctx), b.uploadsDuringTurns(ctx))
}

// largeUpload compares an upload with the bare server that hashes and stores a body, in alternating rounds.
func (b uploadBench) largeUpload(ctx context.Context) error {
	size := int64(b.pickCount(1<<30, 32<<20))
	accounts, err := b.site.EnsureAccounts(ctx, 1)
	if err != nil {
		return err
	}
	var ours, theirs, grown figures.Samples
	table := figures.NewTable("round", "server", "s", "MB/s", "memory at rest MB", "at most MB")
	for round := range b.rounds {
		for _, service := range alternate(round) {
			var file *protocol.FileID
			name, pid, send := "baseline", b.site.File.PID(), func() error { return putBaseline(ctx, b.site.File.Address, size) }
			if service {
				name, pid, send = "turnstone", b.site.Service.PID(), func() (err error) { file, err = upload(ctx, accounts[0], size); return err }
			}
			rest, err := site.SettledMemory(ctx, pid)
			if err != nil {
				return err
			}
			watch := watchMemory(ctx, pid)
			began := time.Now()
			err = send()
			took := time.Since(began).Seconds()
			most, failed := watch()
			if err := errors.Join(err, failed); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if file != nil {
				if err := deleteFile(ctx, accounts[0], *file); err != nil {
					return err
				}
			}
			if speed := float64(size) / took / 1e6; service {
				ours, grown = append(ours, speed), append(grown, float64(most-rest)/(1<<20))
			} else {
				theirs = append(theirs, speed)
			}
			table.Add(round+1, name, took, float64(size)/took/1e6, float64(rest)/1e6, float64(most)/1e6)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{Goal: "P13", Ours: ours, Baseline: theirs, Unit: "MB/s", Score: ours.DividedBy(theirs)})
	b.report.Add(goals.Figure{Goal: "P13 memory", Ours: grown, Unit: "MiB", Score: grown})
	b.report.Detail("P13", fmt.Sprintf("an upload of %d MiB", size>>20), table)
	return nil
}

// watchMemory samples the memory of a process until the returned function is called, which returns the largest sample.
func watchMemory(ctx context.Context, pid int) (stop func() (most int64, err error)) {
	const interval = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var most int64
	var failed error
	go func() {
		defer close(done)
		for {
			now, err := site.MemoryOf(pid)
			if most = max(most, now); err != nil {
				failed = err
				return
			}
			if clock.Sleep(ctx, interval) != nil {
				return
			}
		}
	}()
	return func() (int64, error) {
		cancel()
		<-done
		return most, failed
	}
}

// block is a part of the text that is sent repeatedly, so that making the text costs the sender nothing.
var block = sync.OnceValue(func() []byte {
	const size = 1 << 20
	var b []byte
	for n := 1; len(b) < size; n++ {
		b = fmt.Appendf(b, "%012d The tide comes in twice a day, at about the same hour as on the day before. -----------\n", n)
	}
	return b[:size]
})

// repeated is a reader of size bytes that repeats block.
func repeated(size int64) io.Reader {
	var parts []io.Reader
	for at := int64(0); at < size; at += int64(len(block())) {
		parts = append(parts, bytes.NewReader(block()[:min(int64(len(block())), size-at)]))
	}
	return io.MultiReader(parts...)
}

func putBaseline(ctx context.Context, address string, size int64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+address, repeated(size))
	if err != nil {
		return err
	}
	request.ContentLength = size
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the baseline responded %s", response.Status)
	}
	return nil
}

// upload uploads a text.
func upload(ctx context.Context, a *load.Account, size int64) (*protocol.FileID, error) {
	var u protocol.Upload
	err := a.API.Do(ctx, client.Request{Method: http.MethodPost, Path: "/files/uploads", Body: map[string]any{
		"filename": "load.txt", "media_type": "text/plain", "size": size, "purpose": "library",
	}}, &u)
	if err != nil {
		return nil, err
	}
	content := client.Request{Method: http.MethodPut, Path: u.Path() + "/content", Body: client.Body{Reader: repeated(size), Size: size}, Header: http.Header{"Content-Type": {"text/plain"}}}
	if err := a.API.Do(ctx, content, &u); err != nil {
		return nil, err
	}
	if u.FileID == nil {
		return nil, fmt.Errorf("the upload ended %s: %+v", u.State, u.Failure)
	}
	return u.FileID, nil
}

func deleteFile(ctx context.Context, a *load.Account, id protocol.FileID) error {
	return a.API.Do(ctx, client.Request{Method: http.MethodDelete, Path: "/files/" + id.String()}, nil)
}

// uploadsDuringTurns compares the delay of the tokens of live turns with and without uploads at the same time.
func (b uploadBench) uploadsDuringTurns(ctx context.Context) error {
	turns, uploads, size := b.pickCount(200, 20), b.pickCount(50, 5), int64(b.pickCount(2<<20, 1<<20))
	over := b.pickDuration(8*time.Second, 3*time.Second)
	accounts, err := b.site.EnsureAccounts(ctx, uploads)
	if err != nil {
		return err
	}
	var with, without figures.Samples
	table := figures.NewTable("round", "uploads", "uploaded MB/s", "tokens/s", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	for round := range b.rounds {
		for _, during := range alternate(round) {
			count := 0
			if during {
				count = uploads
			}
			stop := repeatUploads(ctx, accounts[:count], size)
			w, err := b.relayed(ctx, true, turns, load.TokenInterval, time.Second, over, func() error { _, err := stop(); return err })
			rate, _ := stop() // err has its error
			if err != nil {
				return err
			}
			if during {
				with = append(with, w.Delay.P50)
			} else {
				without = append(without, w.Delay.P50)
			}
			table.Add(round+1, count, rate*float64(size)/1e6, w.rate(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.othersCPUs)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{Goal: "P13 turns", Ours: with, Baseline: without, Unit: "ms", Score: with.DividedBy(without)})
	b.report.Detail("P13 turns", fmt.Sprintf("%d live turns during %d uploads of %d MiB", turns, uploads, size>>20), table)
	return nil
}

// repeatUploads uploads one file after the other for each account, until stop is called. stop returns the rate in files
// per second; further calls return the same.
func repeatUploads(ctx context.Context, accounts []*load.Account, size int64) (stop func() (rate float64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var mu sync.Mutex
	files, failures := 0, []error(nil)
	began := time.Now()
	for _, a := range accounts {
		all.Go(func() {
			for {
				file, err := upload(ctx, a, size)
				if err == nil {
					err = deleteFile(ctx, a, *file)
				}
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if err == nil {
					files++
				} else {
					failures = append(failures, err)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	return sync.OnceValues(func() (float64, error) {
		took := time.Since(began)
		cancel()
		all.Wait()
		return float64(files) / took.Seconds(), errors.Join(failures...)
	})
}
