package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/persistence"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clock"
)

// P10: costs that must not grow with the length of a turn, the length of a conversation or the number of past turns.

// longTurn compares the CPU time per token early and late in the same turns.
func (b *bench) longTurn(ctx context.Context) error {
	// The load is light: under a heavier one the service groups tokens, which hides the cost of a token.
	const turns, interval = 12, 3 * time.Millisecond
	late := b.pickCount(20_000, 2000)
	over := time.Duration(b.pickCount(2000, 500)) * interval
	text := load.Script{Tokens: load.Endless, Interval: interval}.String()
	var early, later figures.Samples
	table := figures.NewTable("round", "around token", "tokens/s", "µs per token", "with Postgres", "tokens per event", "delay p50 ms", "p99", "max", "others' CPUs")
	accounts, err := b.site.EnsureAccounts(ctx, turns)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		rec := load.NewRecorder()
		f, err := load.Launch(ctx, b.site.Public, turns, warm, rec, func(i int) []byte { return accounts[i].ChatRequest(text, "") })
		if err != nil {
			return err
		}
		begun := time.Now()
		for i, at := range []int{100, late} {
			if err := clock.Sleep(ctx, time.Until(begun.Add(time.Duration(at)*interval))); err != nil {
				f.Close()
				return err
			}
			w, err := b.measure(ctx, rec, over)
			if err != nil {
				f.Close()
				return err
			}
			table.Add(round+1, at, w.rate(), w.perToken(w.used.Service), w.perToken(w.used.Service+w.used.Postgres), float64(w.Tokens)/float64(max(w.Events, 1)),
				w.Delay.P50, w.Delay.P99, w.Delay.Max, w.othersCPUs)
			b.Say("  %s", table.Last())
			if i == 0 {
				early = append(early, w.perToken(w.used.Service))
			} else {
				later = append(later, w.perToken(w.used.Service))
			}
			rec.Reset()
		}
		err = errors.Join(b.site.EndTurns(ctx), f.Await(ctx, load.EndWithin), f.Check())
		f.Close()
		if err != nil {
			return err
		}
		if err := b.site.AwaitQuiet(ctx); err != nil {
			return err
		}
	}
	b.report.Add(goals.Figure{Goal: "P10 token", Ours: later, Baseline: early, Unit: "µs", Score: later.DividedBy(early), Note: fmt.Sprintf("measured from token %d", late)})
	b.report.Detail("P10", fmt.Sprintf("%d turns at %d tokens/s each, measured early and late in the turns", turns, int(time.Second/interval)), table)
	return nil
}

const (
	// seedConversationSQL fills the only branch of a conversation with messages, alternately of the user and the
	// assistant.
	seedConversationSQL = `
with c as (select account_id, conversation_id, active_branch_id from conversations where conversation_id = '%s'),
ids as materialized (
    select n, ('0190a000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id from generate_series(1, %d) n
), made as (
    insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts)
    select c.account_id, i.id, c.conversation_id, c.active_branch_id, i.n, p.id,
           case when i.n %% 2 = 1 then 'user' else 'assistant' end, 'complete',
           json_build_array(json_build_object('id', 'part_00000000000000000000000000', 'type', 'text', 'text', repeat('Something was said. ', 10)))
    from c, ids i left join ids p on p.n = i.n - 1
), head as (
    update branches b set head_message_id = (select id from ids where n = %[2]d), head_depth = %[2]d
    from c where b.account_id = c.account_id and b.branch_id = c.active_branch_id
)
update conversations set message_count = %[2]d from c where conversations.account_id = c.account_id and conversations.conversation_id = c.conversation_id`
)

// longConversation compares sequential starts in a long conversation with sequential starts in empty ones.
func (b *bench) longConversation(ctx context.Context) error {
	messages, starts := b.pickCount(100_000, 1000), b.pickCount(60, 5)
	accounts, err := b.site.EnsureAccounts(ctx, 1)
	if err != nil {
		return err
	}
	a := accounts[0]
	long, err := b.conversation(ctx, a)
	if err != nil {
		return err
	}
	if _, err := b.site.SQL(ctx, fmt.Sprintf(seedConversationSQL, uuidOf(long), messages)+"; vacuum analyze messages;"); err != nil {
		return err
	}
	text := load.Script{Tokens: 1}.String()
	var head, first [2]figures.Samples
	table := figures.NewTable("round", "conversation", "header p50 ms", "p99", "max", "first token p50 ms", "p99", "max")
	for round := range b.rounds {
		for _, isLong := range alternate(round) {
			rec := load.NewRecorder()
			rec.Open.Store(true)
			for i := range starts {
				in := long
				if !isLong {
					if in, err = b.conversation(ctx, a); err != nil {
						return err
					}
				}
				f, err := load.Launch(ctx, b.site.Public, 1, 0, rec, func(int) []byte { return a.ChatRequest(fmt.Sprint(text, " ", i), in) })
				if err != nil {
					return err
				}
				if err := errors.Join(f.Await(ctx, load.EndWithin), f.Check()); err != nil {
					return err
				}
				if err := b.untilFree(ctx, a, in); err != nil {
					return err
				}
			}
			seen, side, name := rec.Sum(), 1, "empty"
			if isLong {
				side, name = 0, fmt.Sprintf("%d messages", messages)
			}
			head[side], first[side] = append(head[side], seen.Begin.P50), append(first[side], seen.First.P50)
			table.Add(round+1, name, seen.Begin.P50, seen.Begin.P99, seen.Begin.Max, seen.First.P50, seen.First.P99, seen.First.Max)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{
		Goal: "P10 start", Ours: head[0], Baseline: head[1], Unit: "ms", Score: head[0].DividedBy(head[1]),
		Note: fmt.Sprintf("measured with %d messages; p50 until the response header, which is sent after the commit", messages),
	})
	b.report.Add(goals.Figure{
		Goal: "P10 first token", Ours: first[0], Baseline: first[1], Unit: "ms", Score: first[0].DividedBy(first[1]), Note: fmt.Sprintf("measured with %d messages; p50", messages),
	})
	b.report.Detail("P10", "sequential starts; the first token also waits until the model has been sent its context", table)
	return nil
}

// conversation creates a conversation with a title, so that the service does not generate one, and returns its
// identifier.
func (b *bench) conversation(ctx context.Context, a *load.Account) (string, error) {
	var made struct {
		ID string `json:"conversation_id"`
	}
	err := a.API.Do(ctx, client.Request{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Growth"}}, &made)
	return made.ID, err
}

// untilFree waits until a conversation has no live turn.
func (b *bench) untilFree(ctx context.Context, a *load.Account, conversation string) error {
	return load.Until(ctx, load.CallTimeout, func() (bool, error) {
		var page struct {
			Conversation struct {
				Live *string `json:"live_turn_id"`
			} `json:"conversation"`
			Live *string `json:"live_turn_id"`
		}
		err := a.API.Do(ctx, client.Request{Method: http.MethodGet, Path: "/conversations/" + conversation}, &page)
		return page.Live == nil && page.Conversation.Live == nil, err
	})
}

// uuidOf returns a conversation's identifier as the database stores it, or "" if it is invalid.
func uuidOf(conversation string) string {
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(conversation)); err != nil {
		return ""
	}
	return uuid.UUID(id).String()
}

// manyTurns runs complete turns of one token each, and measures the memory after some and after all of them.
func (b *bench) manyTurns(ctx context.Context) error {
	some, all := b.pickCount(10_000, 100), b.pickCount(1_000_000, 1000)
	accounts, err := b.site.EnsureAccounts(ctx, b.pickCount(startAccount, quickAccounts))
	if err != nil {
		return err
	}
	if err := b.site.RestartService(ctx); err != nil {
		return err
	}
	table := figures.NewTable("turns", "live heap MB", "memory MB", "goroutines", "turns/s")
	var heaps figures.Samples
	done := 0
	for _, target := range []int{some, all} {
		begun := time.Now()
		if err := b.wholeTurns(ctx, accounts, target-done); err != nil {
			return err
		}
		rate := float64(target-done) / time.Since(begun).Seconds()
		done = target
		// The actor of a finished turn keeps responding to commands for two seconds.
		if err := errors.Join(b.site.AwaitIdle(ctx), clock.Sleep(ctx, 3*time.Second)); err != nil {
			return err
		}
		heap, err := b.site.LiveHeap(ctx)
		if err != nil {
			return err
		}
		routines, err := b.site.Metric(ctx, "go_goroutines")
		if err != nil {
			return err
		}
		used, err := site.MemoryOf(b.site.Service.PID())
		if err != nil {
			return err
		}
		heaps = append(heaps, heap/1e6)
		table.Add(target, heap/1e6, float64(used)/1e6, routines, rate)
		b.Say("  %s", table.Last())
	}
	b.report.Add(goals.Figure{
		Goal: "P10 memory", Ours: heaps[1:], Baseline: heaps[:1], Unit: "MB", Score: heaps[1:].DividedBy(heaps[:1]),
		Note: fmt.Sprintf("measured after %d turns, compared with %d", all, some),
	})
	b.report.Detail("P10", "complete turns of one token, 128 in flight; the live heap is measured after a garbage collection", table)
	return nil
}

// wholeTurns runs n turns to their end, with a fixed number in flight.
func (b *bench) wholeTurns(ctx context.Context, accounts []*load.Account, n int) error {
	text := load.Script{Tokens: 1}.String()
	rec := load.NewRecorder()
	var next atomic.Int64
	var running sync.WaitGroup
	for range b.pickCount(inFlight, quickInFlight) {
		running.Go(func() {
			for i := int(next.Add(1)); i <= n && ctx.Err() == nil; i = int(next.Add(1)) {
				conn, err := load.Dial(ctx, b.site.Public)
				if err == nil {
					s := &load.Stream{N: i, Rec: rec, Conn: conn, Request: accounts[i%len(accounts)].ChatRequest(text, "")}
					err = s.Follow()
					_ = conn.Close()
				}
				if err != nil {
					rec.Fail(err)
				}
			}
		})
	}
	running.Wait()
	if len(rec.Errors) > 0 {
		return errors.Join(ctx.Err(), errors.New(rec.Sample()))
	}
	return ctx.Err()
}

// P14 runs turns of loggedTokens tokens, then reads a finished turn as many times as replays.
const (
	loggedTokens = 500
	replays      = 400
)

const logSizesSQL = `
select (select sum(pg_column_size(r.*)) from turn_replays r where turn_id in (%[1]s)),
       (select sum(pg_column_size(e.*)) from turn_events e where turn_id in (%[1]s)),
       (select count(*) from turn_events e where turn_id in (%[1]s)),
       (select sum(raw_bytes) from turn_replays r where turn_id in (%[1]s)),
       (select sum(length(parts::text)) from messages m where role = 'assistant' and turn_id in (%[1]s))`

// log measures P14: it runs turns with a prose answer at the pace of a model, then measures what is stored of them and
// how long a replay takes.
func (b *bench) log(ctx context.Context) error {
	const turns = 20
	interval := b.pickDuration(load.TokenInterval, 5*time.Millisecond)
	accounts, err := b.site.EnsureAccounts(ctx, turns)
	if err != nil {
		return err
	}
	text := load.Script{Tokens: loggedTokens, Interval: interval, Words: true}.String()
	f, err := load.Launch(ctx, b.site.Public, turns, time.Second, load.NewRecorder(), func(i int) []byte { return accounts[i].ChatRequest(text, "") })
	if err != nil {
		return err
	}
	if err := errors.Join(f.Await(ctx, load.EndWithin), f.Check(), b.site.AwaitIdle(ctx)); err != nil {
		return err
	}
	names, ids := make([]protocol.TurnID, turns), ""
	for i, s := range f.Streams {
		if err := names[i].UnmarshalText([]byte(s.Turn)); err != nil {
			return err
		}
		ids += fmt.Sprintf("'%s',", uuid.UUID(names[i]))
	}
	sizes, err := b.site.QueryNumbers(ctx, fmt.Sprintf(logSizesSQL, ids[:len(ids)-1]))
	if err != nil {
		return err
	}
	tokens := float64(turns * loggedTokens)
	table := figures.NewTable("what", "bytes per token")
	table.Add("the finished turn's single row, compressed", sizes[0]/tokens)
	table.Add("the same, uncompressed", sizes[3]/tokens)
	table.Add(fmt.Sprintf("rows of the live log (%.1f tokens per row), dropped with the partition of their day", tokens/sizes[2]), sizes[1]/tokens)
	table.Add("the message's parts, as stored in its row", sizes[4]/tokens)
	took, err := b.replay(ctx, accounts, names)
	if err != nil {
		return err
	}
	b.report.Add(goals.Figure{Goal: "P14 bytes", Ours: figures.Samples{sizes[0] / tokens}, Baseline: figures.Samples{sizes[4] / tokens}, Unit: "B", Score: figures.Samples{sizes[0] / tokens}})
	b.report.Add(goals.Figure{
		Goal: "P14 replay", Ours: figures.Samples{took.P50}, Unit: "ms", Score: figures.Samples{took.P50},
		Note: fmt.Sprintf("p99 %s ms, max %s ms", figures.Number(took.P99), figures.Number(took.Max)),
	})
	b.report.Detail("P14", fmt.Sprintf("%d turns of %d tokens", turns, loggedTokens), table)
	return nil
}

// replay reads finished turns through turns.Store, as the service does, and returns how long a read takes.
func (b *bench) replay(ctx context.Context, accounts []*load.Account, finished []protocol.TurnID) (load.Spread, error) {
	db, err := persistence.Open(ctx, persistence.Config{URL: b.site.Postgres.DSN(site.DatabaseLogin, site.DatabaseName), Logger: zap.NewNop()})
	if err != nil {
		return load.Spread{}, err
	}
	defer db.Close()
	store := db.StartTurns(turns.Options{})
	defer store.Close()
	took := load.NewHistogram()
	for i := range replays {
		var account protocol.AccountID
		if err := account.UnmarshalText([]byte(accounts[i%len(finished)].ID)); err != nil {
			return load.Spread{}, err
		}
		begun := time.Now()
		frames, last, err := store.TurnFrames(ctx, account, finished[i%len(finished)], 0, 8<<20)
		if err != nil {
			return load.Spread{}, err
		}
		if i >= len(finished) { // the first read of each turn fills the caches
			load.Record(took, time.Since(begun).Nanoseconds())
		}
		if len(slices.Collect(protocol.FrameLines(frames))) != int(last) {
			return load.Spread{}, fmt.Errorf("the replay of %s has gaps", finished[i%len(finished)])
		}
	}
	return load.SpreadOf(took), nil
}
