package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/server"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clock"
)

// researchBench measures research tasks and turns that wait for approvals.
type researchBench struct{ *bench }

// researchSettings let the service search the bundled pages without a limit.
var researchSettings = []string{
	"TURNSTONE_SEARCH_PROVIDERS=bundled", "TURNSTONE_WEB_SEARCHES_PER_DAY=0", "TURNSTONE_WEB_PAGES_PER_DAY=0", "TURNSTONE_NODE_MAX_RESEARCH_TASKS=1000",
}

// tasksPerAccount is the number of tasks of an account that run at once: fewer than protocol.MaxResearchRunning.
const tasksPerAccount = 2

// research measures P16: how much research tasks delay the tokens of live turns, and the memory of what waits.
func (b researchBench) research(ctx context.Context) (err error) {
	if err := b.site.RestartService(ctx, researchSettings...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.site.RestartService(ctx)) }()
	return errors.Join(b.tasksDuringTurns(ctx), b.waitingTasks(ctx), b.waitingApprovals(ctx))
}

// tasksDuringTurns compares the delay of the tokens of live turns with and without research tasks at the same time.
func (b researchBench) tasksDuringTurns(ctx context.Context) error {
	turns, tasks := b.pickCount(200, 20), b.pickCount(50, 4)
	ramp, over := b.pickDuration(4*time.Second, time.Second), b.pickDuration(40*time.Second, 3*time.Second)
	accounts, err := b.site.EnsureAccounts(ctx, tasks/tasksPerAccount)
	if err != nil {
		return err
	}
	var with, without figures.Samples
	table := figures.NewTable("round", "tasks", "tasks/h", "tokens/s", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	for round := range b.rounds {
		for _, during := range alternate(round) {
			count := 0
			if during {
				count = tasks
			}
			stop := repeatTasks(ctx, accounts, count)
			w, err := b.relayed(ctx, true, turns, load.TokenInterval, ramp, over, func() error { _, err := stop(); return err })
			rate, _ := stop() // err has its error
			if err != nil {
				return err
			}
			if during {
				with = append(with, w.Delay.P50)
			} else {
				without = append(without, w.Delay.P50)
			}
			table.Add(round+1, count, fmt.Sprintf("%.0f", rate*3600), w.rate(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.othersCPUs)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{Goal: "P16 turns", Ours: with, Baseline: without, Unit: "ms", Score: with.DividedBy(without)})
	b.report.Detail("P16 turns", fmt.Sprintf("%d live turns beside %d research tasks whose model takes %s for a step", turns, tasks, server.StepTime), table)
	return nil
}

// startTask starts a research task in a new conversation.
func startTask(ctx context.Context, a *load.Account, question string) (*protocol.ResearchTask, error) {
	var conversation protocol.Conversation
	if err := a.API.Do(ctx, client.Request{Method: http.MethodPost, Path: "/conversations", Body: map[string]any{}}, &conversation); err != nil {
		return nil, err
	}
	var task protocol.ResearchTask
	err := a.API.Do(ctx, client.Request{
		Method: http.MethodPost, Path: "/conversations/" + conversation.ConversationID.String() + "/research-tasks",
		Body: map[string]any{"question": question, "depth": protocol.ResearchStandard},
	}, &task)
	return &task, err
}

// taskPoll is the time between two requests for the state of a task.
const taskPoll = 500 * time.Millisecond

func taskPath(id protocol.TaskID) string { return "/research-tasks/" + id.String() }

// awaitTask polls a task until it has ended.
func awaitTask(ctx context.Context, a *load.Account, id protocol.TaskID) (task *protocol.ResearchTask, err error) {
	err = load.Until(ctx, beginWithin, func() (bool, error) {
		task = &protocol.ResearchTask{}
		if err := a.API.Do(ctx, client.Request{Method: http.MethodGet, Path: taskPath(id)}, task); err != nil || task.State.Terminal() {
			return true, err
		}
		return false, clock.Sleep(ctx, taskPoll)
	})
	return task, err
}

// cancelTask cancels a task and waits for its end.
func cancelTask(ctx context.Context, a *load.Account, id protocol.TaskID) error {
	err := a.API.Do(ctx, client.Request{Method: http.MethodPost, Path: taskPath(id) + "/cancel", Body: map[string]any{}}, nil)
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Code == protocol.CodeConflict { // it has just ended
		return nil
	}
	if err == nil {
		_, err = awaitTask(ctx, a, id)
	}
	return err
}

// taskRamp is the time between the starts of the first tasks, which are not measured.
const taskRamp = 50 * time.Millisecond

// repeatTasks runs one task after the other in count places, until stop is called, which cancels those that run. It returns the
// rate of finished tasks per second; further calls return the same.
func repeatTasks(ctx context.Context, accounts []*load.Account, count int) (stop func() (rate float64, err error)) {
	running, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var mu sync.Mutex
	finished, failures := 0, []error(nil)
	began := time.Now()
	for place := range count {
		all.Go(func() {
			if clock.Sleep(running, time.Duration(place)*taskRamp) != nil {
				return
			}
			done, err := runTasks(ctx, running, accounts[place%len(accounts)])
			mu.Lock()
			defer mu.Unlock()
			finished += done
			failures = append(failures, err)
		})
	}
	return sync.OnceValues(func() (float64, error) {
		took := time.Since(began)
		cancel()
		all.Wait()
		return float64(finished) / took.Seconds(), errors.Join(failures...)
	})
}

// runTasks runs one task after the other while running has not ended, and returns how many have completed.
func runTasks(ctx, running context.Context, a *load.Account) (finished int, err error) {
	for running.Err() == nil {
		task, err := startTask(ctx, a, "What causes tides, and how are they predicted?")
		if err != nil {
			return finished, err
		}
		ended, err := awaitTask(running, a, task.TaskID)
		switch {
		case running.Err() != nil:
			return finished, cancelTask(ctx, a, task.TaskID)
		case err != nil:
			return finished, err
		case ended.State != protocol.ResearchCompleted:
			return finished, fmt.Errorf("a research task ended %s: %+v", ended.State, ended.Failure)
		}
		finished++
	}
	return finished, nil
}

// waitingTasks measures the memory of research tasks that wait for their model.
func (b researchBench) waitingTasks(ctx context.Context) error {
	n := b.pickCount(300, 20)
	accounts, err := b.site.EnsureAccounts(ctx, n/tasksPerAccount)
	if err != nil {
		return err
	}
	question := "What causes tides? " + load.Script{Tokens: 1, First: time.Hour}.String()
	return b.waiting(ctx, "P16 task", fmt.Sprintf("%d research tasks that wait for their model", n), n, func(n int) (func() error, error) {
		tasks := make([]*protocol.ResearchTask, n)
		for i := range tasks {
			if tasks[i], err = startTask(ctx, accounts[i%len(accounts)], question); err != nil {
				return nil, err
			}
		}
		return func() (err error) {
			for i, task := range tasks {
				err = errors.Join(err, cancelTask(ctx, accounts[i%len(accounts)], task.TaskID))
			}
			return err
		}, b.awaitRows(ctx, n, `select count(*) from research_tasks where state = 'running'`)
	})
}

// approvalRamp is the time between two starts of turns that wait for an approval. They are not measured.
const approvalRamp = 2 * memoryRamp

// waitingApprovals measures the memory of turns that wait for an approval.
func (b researchBench) waitingApprovals(ctx context.Context) error {
	n := b.pickCount(2000, 100)
	accounts, err := b.accountsFor(ctx, n)
	if err != nil {
		return err
	}
	text := load.Script{Tokens: 20, Interval: time.Millisecond, Approval: true}.String()
	return b.waiting(ctx, "P16 approval", fmt.Sprintf("%d turns that wait for an approval", n), n, func(n int) (func() error, error) {
		turns := make([]*load.Stream, 0, n)
		for len(turns) < n {
			started, err := b.startWaiting(ctx, accounts, text, len(turns), min(waitingAtOnce, n-len(turns)))
			if err != nil {
				return nil, err
			}
			turns = append(turns, started...)
		}
		return func() (err error) {
			for i, s := range turns {
				_, failed := accounts[i%len(accounts)].API.Cancel(ctx, s.Turn, protocol.CancelTurn)
				err = errors.Join(err, failed)
			}
			return err
		}, nil
	})
}

// waitingAtOnce is the number of turns that start together. Each has a reader until all of them wait: the readers of all turns at
// once would need more memory than the turns, which the service keeps for a while.
const waitingAtOnce = 100

// startWaiting starts turns that come to wait for an approval, after those that wait already.
func (b researchBench) startWaiting(ctx context.Context, accounts []*load.Account, text string, before, count int) ([]*load.Stream, error) {
	f, err := load.Launch(ctx, b.site.Public, count, time.Duration(count)*approvalRamp, load.NewRecorder(),
		func(i int) []byte { return accounts[(before+i)%len(accounts)].ChatRequest(text, "") })
	if err != nil {
		return nil, err
	}
	defer f.Close() // a turn that waits needs no reader
	if err := f.AwaitFirst(ctx, beginWithin); err != nil {
		return nil, err
	}
	return f.Streams, b.awaitRows(ctx, before+count, `select count(*) from turns where owner is null and parked_until is not null`)
}

// warmShare is the share of the things that wait before the memory at rest is measured, so that what is allocated once is not
// measured.
const warmShare = 10

// waiting measures the memory of n things of one kind that wait. begin makes some of them wait and returns what ends them.
func (b researchBench) waiting(ctx context.Context, goal, what string, n int, begin func(n int) (end func() error, err error)) error {
	var each figures.Samples
	table := figures.NewTable("round", "at rest MB", "waiting MB", "kB each")
	for round := range b.rounds {
		if err := b.site.RestartService(ctx, researchSettings...); err != nil {
			return err
		}
		end, err := begin(n / warmShare)
		if err == nil {
			err = end()
		}
		if err != nil {
			return err
		}
		rest, err := site.SettledMemory(ctx, b.site.Service.PID())
		if err != nil {
			return err
		}
		if end, err = begin(n); err != nil {
			return err
		}
		used, err := site.SettledMemory(ctx, b.site.Service.PID())
		if err := errors.Join(err, end()); err != nil {
			return err
		}
		each = append(each, float64(max(used-rest, site.MemoryResolution(rest)))/float64(n)/1000)
		table.Add(round+1, float64(rest)/1e6, float64(used)/1e6, each[len(each)-1])
		b.Say("  %s", table.Last())
	}
	b.report.Add(goals.Figure{Goal: goal, Ours: each, Unit: "kB", Score: each})
	b.report.Detail(goal, what, table)
	return nil
}

// awaitRows waits until a query counts n rows.
func (b researchBench) awaitRows(ctx context.Context, n int, query string) error {
	return load.Until(ctx, beginWithin, func() (bool, error) {
		counted, err := b.site.QueryNumbers(ctx, query)
		if err != nil {
			return false, err
		}
		if len(counted) != 1 {
			return false, fmt.Errorf("the query %q returned %v", query, counted)
		}
		return int(counted[0]) >= n, clock.Sleep(ctx, 100*time.Millisecond)
	})
}
