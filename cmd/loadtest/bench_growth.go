package main

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

	"turnstone/persistence"
	"turnstone/protocol"
)

// growth is P10: what must not become dearer with what is there already.
func (b *bench) growth(ctx context.Context) error {
	return errors.Join(b.longTurn(ctx), b.longConversation(ctx), b.manyTurns(ctx))
}

// longTurn compares the processor time of a token early and late in the same turns.
func (b *bench) longTurn(ctx context.Context) error {
	// A light load: one that makes the service gather would hide what a token costs.
	const turns, interval = 12, 3 * time.Millisecond
	late := b.few(20_000, 2000)
	over := time.Duration(b.few(2000, 500)) * interval
	text := script{Tokens: endless, Interval: interval}.String()
	var early, later samples
	table := newTable("round", "around token", "tokens/s", "µs a token", "with Postgres", "tokens an event", "delay p50 ms", "p99", "max", "others' CPUs")
	accounts, err := b.site.users(ctx, turns)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		rec := newRecorder()
		f, err := launch(ctx, b.site.public, turns, warm, rec, func(i int) []byte { return accounts[i].chatRequest(text, "") })
		if err != nil {
			return err
		}
		begun := time.Now()
		for i, at := range []int{100, late} {
			if err := waitUntil(ctx, begun.Add(time.Duration(at)*interval)); err != nil {
				f.close()
				return err
			}
			w, err := b.measure(ctx, rec, over)
			if err != nil {
				f.close()
				return err
			}
			table.add(round+1, at, w.rate(), w.perToken(w.used.service), w.perToken(w.used.service+w.used.postgres), float64(w.Tokens)/float64(max(w.Events, 1)), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.foreign)
			b.say("  %s", table.last())
			if i == 0 {
				early = append(early, w.perToken(w.used.service))
			} else {
				later = append(later, w.perToken(w.used.service))
			}
			rec.reset()
		}
		err = errors.Join(b.site.endTurns(ctx), f.await(ctx, endWithin), f.check())
		f.close()
		if err != nil {
			return err
		}
		if err := b.site.settle(ctx); err != nil {
			return err
		}
	}
	b.report.add(figure{Goal: "P10 token", Ours: later, Baseline: early, Unit: "µs", Score: later.by(early), Note: fmt.Sprintf("here token %d", late)})
	b.report.detail("P10", fmt.Sprintf("%d turns at %d tokens/s each, early and late in them", turns, int(time.Second/interval)), table)
	return nil
}

const (
	// seedConversationSQL fills the one branch of a conversation with messages, in turns of question and answer.
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

// longConversation compares starts in a long conversation and in an empty one, one after the other.
func (b *bench) longConversation(ctx context.Context) error {
	messages, starts := b.few(100_000, 1000), b.few(60, 5)
	accounts, err := b.site.users(ctx, 1)
	if err != nil {
		return err
	}
	a := accounts[0]
	long, err := b.conversation(ctx, a)
	if err != nil {
		return err
	}
	if _, err := b.site.sql(ctx, fmt.Sprintf(seedConversationSQL, uuidOf(long), messages)+"; vacuum analyze messages;"); err != nil {
		return err
	}
	text := script{Tokens: 1}.String()
	var head, first [2]samples
	table := newTable("round", "conversation", "head p50 ms", "p99", "max", "first token p50 ms", "p99", "max")
	for round := range b.rounds {
		for _, isLong := range alternate(round) {
			rec := newRecorder()
			rec.open.Store(true)
			for i := range starts {
				in := long
				if !isLong {
					if in, err = b.conversation(ctx, a); err != nil {
						return err
					}
				}
				f, err := launch(ctx, b.site.public, 1, 0, rec, func(int) []byte { return a.chatRequest(fmt.Sprint(text, " ", i), in) })
				if err != nil {
					return err
				}
				if err := errors.Join(f.await(ctx, endWithin), f.check()); err != nil {
					return err
				}
				if err := b.untilFree(ctx, a, in); err != nil {
					return err
				}
			}
			seen, side, name := rec.sum(), 1, "empty"
			if isLong {
				side, name = 0, fmt.Sprintf("%d messages", messages)
			}
			head[side], first[side] = append(head[side], seen.Begin.P50), append(first[side], seen.First.P50)
			table.add(round+1, name, seen.Begin.P50, seen.Begin.P99, seen.Begin.Max, seen.First.P50, seen.First.P99, seen.First.Max)
			b.say("  %s", table.last())
		}
	}
	b.report.add(figure{
		Goal: "P10 start", Ours: head[0], Baseline: head[1], Unit: "ms", Score: head[0].by(head[1]),
		Note: fmt.Sprintf("here %d; p50 until the head, which is behind the commit", messages),
	})
	b.report.add(figure{
		Goal: "P10 first token", Ours: first[0], Baseline: first[1], Unit: "ms", Score: first[0].by(first[1]), Note: fmt.Sprintf("here %d; p50", messages),
	})
	b.report.detail("P10", "starts one after the other; the first token also waits until the model was given its context", table)
	return nil
}

// conversation makes one with a title, so that no title is made.
func (b *bench) conversation(ctx context.Context, a *account) (string, error) {
	var made struct {
		ID string `json:"conversation_id"`
	}
	_, err := call(ctx, http.MethodPost, b.site.base()+"/conversations", a, []byte(`{"title":"Growth"}`), http.StatusCreated, &made)
	return made.ID, err
}

// untilFree waits until the last turn of a conversation has let go of it.
func (b *bench) untilFree(ctx context.Context, a *account, conversation string) error {
	return until(ctx, callTimeout, func() (bool, error) {
		var page struct {
			Conversation struct {
				Live *string `json:"live_turn_id"`
			} `json:"conversation"`
			Live *string `json:"live_turn_id"`
		}
		_, err := call(ctx, http.MethodGet, b.site.base()+"/conversations/"+conversation, a, nil, http.StatusOK, &page)
		return page.Live == nil && page.Conversation.Live == nil, err
	})
}

// uuidOf is what the database calls a conversation.
func uuidOf(conversation string) string {
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(conversation)); err != nil {
		return ""
	}
	return uuid.UUID(id).String()
}

// manyTurns runs whole turns, as short as turns are, and looks at what stays in memory after some and after all of them.
func (b *bench) manyTurns(ctx context.Context) error {
	some, all := b.few(10_000, 100), b.few(1_000_000, 1000)
	accounts, err := b.site.users(ctx, b.few(startAccount, quickAccounts))
	if err != nil {
		return err
	}
	if err := b.site.restartService(ctx); err != nil {
		return err
	}
	table := newTable("turns", "live heap MB", "memory MB", "goroutines", "turns/s")
	var heaps samples
	done := 0
	for _, target := range []int{some, all} {
		begun := time.Now()
		if err := b.wholeTurns(ctx, accounts, target-done); err != nil {
			return err
		}
		rate := float64(target-done) / time.Since(begun).Seconds()
		done = target
		// Turns that are over are found for commands for two seconds more.
		if err := errors.Join(b.site.rest(ctx), wait(ctx, 3*time.Second)); err != nil {
			return err
		}
		heap, err := b.site.liveHeap(ctx)
		if err != nil {
			return err
		}
		routines, err := b.site.metric(ctx, "go_goroutines")
		if err != nil {
			return err
		}
		used, err := memoryOf(b.site.service.pid())
		if err != nil {
			return err
		}
		heaps = append(heaps, heap/1e6)
		table.add(target, heap/1e6, float64(used)/1e6, routines, rate)
		b.say("  %s", table.last())
	}
	b.report.add(figure{
		Goal: "P10 memory", Ours: heaps[1:], Baseline: heaps[:1], Unit: "MB", Score: heaps[1:].by(heaps[:1]),
		Note: fmt.Sprintf("here %d against %d", all, some),
	})
	b.report.detail("P10", "whole turns of one token, 128 at once; the heap is what lives after a collection", table)
	return nil
}

func (b *bench) wholeTurns(ctx context.Context, accounts []*account, n int) error {
	text := script{Tokens: 1}.String()
	rec := newRecorder()
	var next atomic.Int64
	var running sync.WaitGroup
	for range b.few(inFlight, quickInFlight) {
		running.Go(func() {
			for i := int(next.Add(1)); i <= n && ctx.Err() == nil; i = int(next.Add(1)) {
				conn, err := dial(ctx, b.site.public)
				if err == nil {
					s := &stream{n: i, rec: rec, conn: conn, request: accounts[i%len(accounts)].chatRequest(text, "")}
					err = s.follow()
					_ = conn.Close()
				}
				if err != nil {
					rec.fail(err)
				}
			}
		})
	}
	running.Wait()
	if len(rec.errors) > 0 {
		return errors.Join(ctx.Err(), errors.New(rec.sample()))
	}
	return ctx.Err()
}

// The finished turn of P14.
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

// log is P14: turns in prose at the pace of a model, then what is kept of them.
func (b *bench) log(ctx context.Context) error {
	const turns = 20
	interval := b.short(tokenInterval, 5*time.Millisecond)
	accounts, err := b.site.users(ctx, turns)
	if err != nil {
		return err
	}
	text := script{Tokens: loggedTokens, Interval: interval, Words: true}.String()
	f, err := launch(ctx, b.site.public, turns, time.Second, newRecorder(), func(i int) []byte { return accounts[i].chatRequest(text, "") })
	if err != nil {
		return err
	}
	if err := errors.Join(f.await(ctx, endWithin), f.check(), b.site.rest(ctx)); err != nil {
		return err
	}
	names, ids := make([]protocol.TurnID, turns), ""
	for i, s := range f.streams {
		if err := names[i].UnmarshalText([]byte(s.turn)); err != nil {
			return err
		}
		ids += fmt.Sprintf("'%s',", uuid.UUID(names[i]))
	}
	sizes, err := b.site.sqlNumbers(ctx, fmt.Sprintf(logSizesSQL, ids[:len(ids)-1]))
	if err != nil {
		return err
	}
	tokens := float64(turns * loggedTokens)
	table := newTable("what", "bytes a token")
	table.add("the finished turn's one row, compressed", sizes[0]/tokens)
	table.add("the same, not compressed", sizes[3]/tokens)
	table.add(fmt.Sprintf("rows of the live log (%.1f tokens a row), gone with their day's partition", tokens/sizes[2]), sizes[1]/tokens)
	table.add("the message's parts as they stand in its row", sizes[4]/tokens)
	took, err := b.replay(ctx, accounts, names)
	if err != nil {
		return err
	}
	b.report.add(figure{Goal: "P14 bytes", Ours: samples{sizes[0] / tokens}, Baseline: samples{sizes[4] / tokens}, Unit: "B", Score: samples{sizes[0] / tokens}})
	b.report.add(figure{Goal: "P14 replay", Ours: samples{took.P50}, Unit: "ms", Score: samples{took.P50}, Note: fmt.Sprintf("p99 %s ms, max %s ms", number(took.P99), number(took.Max))})
	b.report.detail("P14", fmt.Sprintf("%d turns of %d tokens", turns, loggedTokens), table)
	return nil
}

// replay reads finished turns through the store that the service uses.
func (b *bench) replay(ctx context.Context, accounts []*account, turns []protocol.TurnID) (spread, error) {
	db, err := persistence.Open(ctx, persistence.Config{URL: b.site.postgres.DSN(databaseLogin, databaseName), Logger: zap.NewNop()})
	if err != nil {
		return spread{}, err
	}
	defer db.Close()
	store := persistence.NewTurns(db, persistence.TurnsOptions{})
	defer store.Close()
	took := newHistogram()
	for i := range replays {
		var account protocol.AccountID
		if err := account.UnmarshalText([]byte(accounts[i%len(turns)].id)); err != nil {
			return spread{}, err
		}
		begun := time.Now()
		frames, last, err := store.TurnFrames(ctx, account, turns[i%len(turns)], 0, 8<<20)
		if err != nil {
			return spread{}, err
		}
		if i >= len(turns) { // the first of each fills the caches
			record(took, time.Since(begun).Nanoseconds())
		}
		if len(slices.Collect(protocol.FrameLines(frames))) != int(last) {
			return spread{}, fmt.Errorf("the replay of %s has gaps", turns[i%len(turns)])
		}
	}
	return spreadOf(took), nil
}
