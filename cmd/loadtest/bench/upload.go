package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"turnstone/cmd/loadtest/figures"
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
	return errors.Join(b.largeUpload(ctx), b.uploadsBesideTurns(ctx))
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
			name, pid, send := "baseline", b.site.File.PID(), func() error { return putBaseline(ctx, b.site.File.Address, size) }
			if service {
				name, pid, send = "turnstone", b.site.Service.PID(), func() error { return upload(ctx, accounts[0], size) }
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
			if speed := float64(size) / took / 1e6; service {
				ours, grown = append(ours, speed), append(grown, float64(most-rest)/(1<<20))
			} else {
				theirs = append(theirs, speed)
			}
			table.Add(round+1, name, took, float64(size)/took/1e6, float64(rest)/1e6, float64(most)/1e6)
			b.Say("  %s", table.Last())
		}
	}
	b.report.add(figure{Goal: "P13", Ours: ours, Baseline: theirs, Unit: "MB/s", Score: ours.DividedBy(theirs)})
	b.report.add(figure{Goal: "P13 memory", Ours: grown, Unit: "MiB", Score: grown})
	b.report.detail("P13", fmt.Sprintf("an upload of %d MiB", size>>20), table)
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

// lines is an endless text of numbered lines.
type lines struct {
	n    int
	rest []byte
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(l.rest) == 0 {
			l.n++
			l.rest = fmt.Appendf(l.rest[:0], "%012d The tide comes in twice a day, at about the same hour as on the day before. -----------\n", l.n)
		}
		copied := copy(p[n:], l.rest)
		n, l.rest = n+copied, l.rest[copied:]
	}
	return n, nil
}

// block is a part of the text that is sent repeatedly, so that making the text costs the sender nothing.
var block = sync.OnceValue(func() []byte {
	b := make([]byte, 1<<20)
	_, _ = io.ReadFull(&lines{}, b) // endless
	return b
})

// repeated is a reader of size bytes that repeats block.
func repeated(size int64) io.Reader {
	var parts []io.Reader
	for at := int64(0); at < size; at += int64(len(block())) {
		parts = append(parts, &once{block()[:min(int64(len(block())), size-at)]})
	}
	return io.MultiReader(parts...)
}

// once reads a slice without copying more than it is asked for.
type once struct{ rest []byte }

// Read implements io.Reader.
func (o *once) Read(p []byte) (int, error) {
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
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

// upload uploads a text, and deletes its file.
func upload(ctx context.Context, a *load.Account, size int64) error {
	var u protocol.Upload
	err := a.API.Do(ctx, client.Request{Method: http.MethodPost, Path: "/files/uploads", Body: map[string]any{
		"filename": "load.txt", "media_type": "text/plain", "size": size, "purpose": "library",
	}}, &u)
	if err != nil {
		return err
	}
	content := client.Request{Method: http.MethodPut, Path: u.Path() + "/content", Body: client.Body{Reader: repeated(size), Size: size}, Header: http.Header{"Content-Type": {"text/plain"}}}
	if err := a.API.Do(ctx, content, &u); err != nil {
		return err
	}
	if u.FileID == nil {
		return fmt.Errorf("the upload ended %s: %+v", u.State, u.Failure)
	}
	return a.API.Do(ctx, client.Request{Method: http.MethodDelete, Path: "/files/" + u.FileID.String()}, nil)
}

// uploadsBesideTurns compares the delay of the tokens of live turns with and without uploads beside them.
func (b uploadBench) uploadsBesideTurns(ctx context.Context) error {
	turns, uploads, size := b.pickCount(200, 20), b.pickCount(50, 5), int64(b.pickCount(8<<20, 1<<20))
	over := b.pickDuration(8*time.Second, 3*time.Second)
	accounts, err := b.site.EnsureAccounts(ctx, uploads)
	if err != nil {
		return err
	}
	var with, without figures.Samples
	table := figures.NewTable("round", "uploads", "uploaded MB/s", "tokens/s", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	for round := range b.rounds {
		for _, beside := range alternate(round) {
			count := 0
			if beside {
				count = uploads
			}
			sent, stop := repeatUploads(ctx, accounts[:count], size)
			w, err := b.relayed(ctx, true, turns, load.TokenInterval, time.Second, over, stop)
			if err = errors.Join(err, stop()); err != nil {
				return err
			}
			if beside {
				with = append(with, w.Delay.P50)
			} else {
				without = append(without, w.Delay.P50)
			}
			table.Add(round+1, count, float64(sent())*float64(size)/w.took.Seconds()/1e6, w.rate(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.othersCPUs)
			b.Say("  %s", table.Last())
		}
	}
	b.report.add(figure{Goal: "P13 turns", Ours: with, Baseline: without, Unit: "ms", Score: with.DividedBy(without)})
	b.report.detail("P13 turns", fmt.Sprintf("%d live turns beside %d uploads of %d MiB", turns, uploads, size>>20), table)
	return nil
}

// repeatUploads uploads one file after the other for each account, until stop is called. Further calls of stop have no effect.
// sent is the number of files.
func repeatUploads(ctx context.Context, accounts []*load.Account, size int64) (sent func() int, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var mu sync.Mutex
	files, failures := 0, []error(nil)
	for _, a := range accounts {
		all.Go(func() {
			for ctx.Err() == nil {
				err := upload(ctx, a, size)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if files++; err != nil {
					failures = append(failures, err)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	return func() int { return files }, func() error {
		cancel()
		all.Wait()
		return errors.Join(failures...)
	}
}
