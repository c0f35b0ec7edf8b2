package persistence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestStartedTurnIsThereWithItsMessages(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello \"world\""))
	read, err := w.turns.GetTurn(t.Context(), w.account, turn.spec.TurnID)
	w.must(err)
	if read.State != protocol.TurnRunning || !read.AcceptingSteering || read.LastSequence != 1 || read.MessageID != turn.spec.AssistantMessageID ||
		read.Profile != protocol.ProfileBalanced || read.ConversationID != turn.spec.ConversationID {
		t.Errorf("the turn reads %+v", read)
	}
	head, err := w.turns.TurnHead(t.Context(), w.account, turn.spec.TurnID)
	w.must(err)
	if head.Owner == nil || *head.Owner != w.node || head.Epoch != 1 || head.OwnerDead || head.LastSequence != 1 || !head.Accepts {
		t.Errorf("the head is %+v", head)
	}
	stored, err := w.turns.LoadTurn(t.Context(), w.account, turn.spec.TurnID)
	w.must(err)
	if diff := cmp.Diff(turn.spec, stored.Spec); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(stored.Frames, turn.frames) {
		t.Error("the log is not what was stored")
	}
	page, err := w.db.Messages(t.Context(), w.account, &persistence.MessageQuery{ConversationID: turn.spec.ConversationID, Limit: 10})
	w.must(err)
	if len(page.Messages) != 2 || page.Messages[0].Parts[0].Text != "hello \"world\"" || page.Messages[1].Status != protocol.MessageStreaming ||
		page.Messages[0].MessageID != turn.spec.UserMessageID || page.Messages[1].CoversSequence != 1 {
		t.Errorf("the messages are %+v", page.Messages)
	}
	other := pgtest.Account(t, w.db)
	if _, err := w.turns.GetTurn(t.Context(), other, turn.spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account reads it: %v", err)
	}
	if _, _, err := w.turns.TurnFrames(t.Context(), other, turn.spec.TurnID, 0, 1000); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account follows it: %v", err)
	}
}

func TestSameBytesLiveAndFinished(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	for n := 1; n <= 7; n++ {
		turn.append(n)
	}
	compare := func(when string) {
		t.Helper()
		for after := int64(0); after <= turn.next; after++ {
			for _, page := range []int{1, 300, 1 << 20} {
				if want := protocol.SkipFrames(turn.frames, after); !bytes.Equal(turn.read(after, page), want) {
					t.Fatalf("%s, after %d, pages of %d: other bytes", when, after, page)
				}
			}
		}
	}
	compare("live")
	turn.end(nil)
	compare("finished")
	w.database.Admin(t, `truncate turn_events`)
	compare("folded")
}

// After a crash every reader of a node looks at the end of a log at once, each row of which is on a page of its own.
func TestTheEndOfALongLogIsReadWithoutItsBeginning(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	const rows, left = 100, 3
	for range rows {
		turn.append(1)
	}
	conn, err := pgx.Connect(t.Context(), w.database.AdminURL)
	w.must(err)
	defer func() { w.must(conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `set enable_seqscan = off; set enable_bitmapscan = off; set role turnstone_app`) // as for a table that is large
	w.must(err)
	// Row-level security applies to requests, and decides which conditions an index serves.
	_, err = conn.Exec(t.Context(), `select set_config('turnstone.account_id', $1, false)`, protocol.NodeID(w.account).String())
	w.must(err)
	var plan string
	w.must(conn.QueryRow(t.Context(), `explain (analyze, format json, timing off, costs off)`+persistence.ReadEventsSQL,
		turn.spec.AccountID, turn.spec.TurnID, turn.next-1-left, 1<<20).Scan(&plan))
	read := 0
	for _, match := range regexp.MustCompile(`"(?:Actual Rows|Rows Removed by Filter)": (\d+)`).FindAllStringSubmatch(plan, -1) {
		n, err := strconv.Atoi(match[1])
		w.must(err)
		read = max(read, n)
	}
	if read != left {
		t.Errorf("%d rows were read, of a log that goes on for %d:\n%s", read, left, plan)
	}
}

func TestFinishFoldsTheTurn(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	turn.append(3)
	finish := turn.finish()
	started, err := w.turns.FinishTurn(t.Context(), finish)
	if err != nil || started != nil {
		t.Fatalf("%v, %v", started, err)
	}
	if again, err := w.turns.FinishTurn(t.Context(), finish); err != nil || again != nil {
		t.Errorf("the same finish again: %v, %v", again, err)
	}
	foreign := *finish
	foreign.Epoch++
	if _, err := w.turns.FinishTurn(t.Context(), &foreign); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("another epoch's finish: %v", err)
	}
	read, err := w.turns.GetTurn(t.Context(), w.account, turn.spec.TurnID)
	w.must(err)
	if read.State != protocol.TurnCompleted || *read.StopReason != protocol.StopEndTurn || *read.Usage != finish.Usage ||
		read.LastSequence != finish.Last || read.AcceptingSteering || read.FinishedAt == nil {
		t.Errorf("the turn reads %+v", read)
	}
	message, err := w.db.GetMessage(t.Context(), w.account, turn.spec.AssistantMessageID)
	w.must(err)
	if message.Status != protocol.MessageComplete || message.Parts[0].Text != "answer" || *message.ModelID != "scripted-1" || *message.Usage != finish.Usage {
		t.Errorf("the message is %+v", message)
	}
	usage, err := persistence.Row(t.Context(), w.db, w.account, pgx.RowTo[int], `select count(*) from usage_records where source = 'server' and kind = 'turn'`)
	if err != nil || usage != 1 {
		t.Errorf("%d usage records (%v)", usage, err)
	}
	w.database.Admin(t, `do $$ begin if (select count(*) from river.river_job where kind = 'title') <> 1 then raise 'no title job'; end if; end $$`)
	next := w.start(w.request(&turn.spec.ConversationID, "and then?")) // the conversation is free
	if *next.spec.ParentMessageID != turn.spec.AssistantMessageID {
		t.Errorf("the next turn stands after %v", next.spec.ParentMessageID)
	}
}

func TestStartChecksConversationHeadAndBusyTurn(t *testing.T) {
	w := newWorld(t)
	none := protocol.NewConversationID()
	if _, err := w.try(w.request(&none, "hello")); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("an unknown conversation: %v", err)
	}
	turn := w.start(w.request(nil, "hello"))
	conversation := &turn.spec.ConversationID
	_, err := w.try(w.request(conversation, "again"))
	var conflict *protocol.Error
	if !errors.As(err, &conflict) || conflict.Code != protocol.CodeTurnInProgress ||
		fmt.Sprint(conflict.Current) != fmt.Sprint(map[string]protocol.TurnID{"turn_id": turn.spec.TurnID}) {
		t.Errorf("a busy conversation: %v", err)
	}
	steer := w.request(conversation, "again")
	steer.IfBusy = protocol.BusySteer
	if result, err := w.try(steer); err != nil || result.Busy == nil || *result.Busy != turn.spec.TurnID {
		t.Errorf("steering: %+v, %v", result, err)
	}
	turn.end(nil)
	stale := w.request(conversation, "again")
	stale.Expected = &protocol.ExpectedHead{ID: &turn.spec.UserMessageID}
	if _, err := w.try(stale); protocol.CodeOf(err) != protocol.CodeHeadMoved {
		t.Errorf("a stale head: %v", err)
	}
	stale.Expected.ID = nil
	if _, err := w.try(stale); protocol.CodeOf(err) != protocol.CodeHeadMoved {
		t.Errorf("an empty head: %v", err)
	}
	if _, err := w.try(w.request(conversation, "")); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("no input: %v", err)
	}
	stale.Expected.ID = &turn.spec.AssistantMessageID
	w.start(stale)
}

func TestLiveTurnsOfAnAccountAreBounded(t *testing.T) {
	w := newWorld(t)
	var running sync.WaitGroup
	results := make(chan error, 4*testLiveTurns)
	for range cap(results) {
		running.Go(func() {
			_, err := w.try(w.request(nil, "hello"))
			results <- err
		})
	}
	running.Wait()
	begun := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			begun++
		case protocol.CodeOf(err) != protocol.CodeTooManyLiveTurns:
			t.Errorf("refused with %v", err)
		}
	}
	if begun != testLiveTurns {
		t.Errorf("%d turns began, want %d", begun, testLiveTurns)
	}
}

func TestOneOfManyStartsInAConversationWins(t *testing.T) {
	w := newWorld(t)
	first := w.start(w.request(nil, "hello"))
	first.end(nil)
	var running sync.WaitGroup
	results := make(chan error, 8)
	for i := range cap(results) {
		running.Go(func() {
			start := w.request(&first.spec.ConversationID, fmt.Sprint("number ", i))
			start.Expected = &protocol.ExpectedHead{ID: &first.spec.AssistantMessageID}
			_, err := w.try(start)
			results <- err
		})
	}
	running.Wait()
	begun := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			begun++
		case protocol.CodeOf(err) != protocol.CodeTurnInProgress:
			t.Errorf("refused with %v", err)
		}
	}
	if begun != 1 {
		t.Errorf("%d turns began", begun)
	}
}

func TestDrainingNodeBeginsNothing(t *testing.T) {
	w := newWorld(t)
	w.must(w.directory.Drain(t.Context(), w.node))
	if _, err := w.try(w.request(nil, "hello")); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a draining node answers %v", err)
	}
}

// Each branch stores its whole path, branch by branch, so their nesting has a bound.
func TestBranchesAreNotNestedWithoutBound(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	turn.end(nil)
	const most = 1000
	nest := func(branches int) {
		w.database.Admin(t, `
			insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
			select account_id, branch_id, branch_id, 2000000000 + n, 2000000000 + n
			from branch_segments cross join generate_series(1, $1) n where branch_id = $2 and from_depth = 1
			on conflict do nothing`, branches-1, turn.spec.BranchID)
	}
	regenerate := w.request(&turn.spec.ConversationID, "")
	regenerate.Branch = &protocol.BranchRequest{MessageID: turn.spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	create := func() error {
		_, err := w.db.CreateBranch(t.Context(), w.account, turn.spec.ConversationID, regenerate.Branch, "")
		return err
	}
	nest(most - 1)
	w.must(create())
	w.start(regenerate).end(nil)
	nest(most)
	wantCode(t, create(), protocol.CodeInvalid)
	_, err := w.try(regenerate)
	wantCode(t, err, protocol.CodeInvalid)
	if _, err := w.db.ForkConversation(t.Context(), w.account, turn.spec.ConversationID, turn.spec.AssistantMessageID, ""); err != nil {
		t.Errorf("a fork, which goes through no branch: %v", err)
	}
}

func TestBranches(t *testing.T) {
	w := newWorld(t)
	first := w.start(w.request(nil, "one"))
	first.end(nil)
	conversation := &first.spec.ConversationID
	second := w.start(w.request(conversation, "two"))
	second.end(nil)

	regenerate := w.request(conversation, "")
	regenerate.Branch = &protocol.BranchRequest{MessageID: second.spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	again := w.start(regenerate)
	if again.spec.UserMessageID != second.spec.UserMessageID || again.spec.Input != "two" || again.spec.BranchID == second.spec.BranchID ||
		*again.spec.ParentMessageID != first.spec.AssistantMessageID {
		t.Errorf("regenerated as %+v", again.spec)
	}
	again.end(nil)

	edit := w.request(conversation, "uno")
	edit.Branch = &protocol.BranchRequest{MessageID: first.spec.UserMessageID, Mode: protocol.BranchEdit}
	edited := w.start(edit)
	if edited.spec.ParentMessageID != nil {
		t.Errorf("edited as %+v", edited.spec)
	}
	edited.end(nil)

	third := w.start(w.request(conversation, "three")) // goes on where the active branch is
	third.end(nil)
	for _, c := range []struct {
		turn *actedTurn
		want string
	}{
		{second, "one answer two answer"}, {again, "one answer two answer"}, {edited, "uno answer"}, {third, "uno answer three answer"},
	} {
		if got := w.history(c.turn, 1<<20); got != c.want {
			t.Errorf("history %q, want %q", got, c.want)
		}
	}

	wrong := w.request(conversation, "x")
	wrong.Branch = &protocol.BranchRequest{MessageID: first.spec.AssistantMessageID, Mode: protocol.BranchEdit}
	if _, err := w.try(wrong); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("editing an answer: %v", err)
	}
	wrong.Branch.MessageID = protocol.NewMessageID()
	if _, err := w.try(wrong); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("editing nothing: %v", err)
	}

	prepared := &protocol.BranchRequest{MessageID: third.spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	_, err := w.db.CreateBranch(t.Context(), w.account, *conversation, prepared, "")
	w.must(err)
	fourth := w.start(w.request(conversation, ""))
	if fourth.spec.UserMessageID != third.spec.UserMessageID || fourth.spec.Input != "three" {
		t.Errorf("a prepared branch goes on as %+v", fourth.spec)
	}
	fourth.end(nil)
	if got, want := w.history(fourth, 1<<20), "uno answer three answer"; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

// history is the text of the messages up to a turn's answer.
func (w *world) history(turn *actedTurn, maxBytes int) string {
	w.Helper()
	s := turn.spec
	messages, _, err := w.turns.History(w.Context(), w.account, s.ConversationID, s.BranchID, s.AssistantMessageID, 200, maxBytes)
	w.must(err)
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Parts[0].Text)
	}
	return strings.Join(texts, " ")
}

func TestHistoryGoesBackAsFarAsAsked(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "0"))
	turn.end(nil)
	for i := 1; i < 70; i++ {
		turn = w.start(w.request(&turn.spec.ConversationID, fmt.Sprint(i)))
		turn.end(nil)
	}
	s := turn.spec
	all, more, err := w.turns.History(t.Context(), w.account, s.ConversationID, s.BranchID, s.AssistantMessageID, 200, 1<<20)
	w.must(err)
	if len(all) != 140 || more || all[0].Parts[0].Text != "0" || all[138].Parts[0].Text != "69" {
		t.Errorf("%d messages, more %v", len(all), more)
	}
	some, more, err := w.turns.History(t.Context(), w.account, s.ConversationID, s.BranchID, s.UserMessageID, 7, 1<<20)
	w.must(err)
	if !more || len(some) != 7 || some[0].Parts[0].Text != "66" || some[6].Parts[0].Text != "69" {
		t.Errorf("%d messages, more %v", len(some), more)
	}
}

func TestHistoryLeavesOutWholeMessagesAndNeverTheLast(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "short"))
	turn.end(nil)
	for _, input := range []string{strings.Repeat("a", 100_000), "long: " + noise(50_000)} { // one that compresses well
		turn = w.start(w.request(&turn.spec.ConversationID, input))
		turn.end(nil)
	}
	s := turn.spec
	for _, bound := range []struct{ bytes, messages int }{
		{0, 1}, {1000, 1}, {49_000, 1}, {51_000, 2}, {150_000, 2}, {1 << 20, 5},
	} {
		messages, more, err := w.turns.History(t.Context(), w.account, s.ConversationID, s.BranchID, s.UserMessageID, 100, bound.bytes)
		w.must(err)
		if len(messages) != bound.messages || more != (bound.messages < 5) || !strings.HasPrefix(messages[len(messages)-1].Parts[0].Text, "long: ") {
			t.Errorf("within %d bytes: %d messages, more %v", bound.bytes, len(messages), more)
		}
	}
}

func TestQueueGoesOnByItself(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	conversation := &turn.spec.ConversationID
	second, third := w.queued(*conversation, "two"), w.queued(*conversation, "three")
	started := turn.end(nil)
	if started == nil || started.Spec.Input != "two" || *started.Spec.FollowUpID != second.FollowUpID || started.Epoch != 1 {
		t.Fatalf("the end began %+v", started)
	}
	next := w.alive(started.Spec, started.Begin)
	next.append(1)
	parked := protocol.NewFollowUpID()
	if more := next.end(func(f *protocol.TurnFinish) {
		f.State, f.StopReason, f.Status, f.PauseQueue = protocol.TurnCancelled, protocol.StopCancelled, protocol.MessageCancelled, true
		f.Parked = []protocol.ParkedInput{{FollowUpID: parked, Text: "use JWT"}}
	}); more != nil {
		t.Errorf("a cancelled turn began %+v", more)
	}
	items, _, err := w.db.ListFollowUps(t.Context(), w.account, *conversation, true, nil, 10)
	w.must(err)
	var got []string
	for _, item := range items {
		got = append(got, item.Content+" "+item.State)
	}
	if want := []string{"two started", "three held", "use JWT held"}; !cmp.Equal(got, want) {
		t.Errorf("the queue holds %q", got)
	}
	if items[1].FollowUpID != third.FollowUpID || items[2].FollowUpID != parked || *items[0].TurnID != next.spec.TurnID {
		t.Errorf("the queue holds %+v", items)
	}
}

func TestStandingQueuesAreStarted(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	start := w.request(&turn.spec.ConversationID, "two")
	start.IfBusy = protocol.BusyQueue
	_, err := w.try(start)
	w.must(err)
	if started := turn.end(func(f *protocol.TurnFinish) { f.MaxLiveTurns = 0 }); started != nil {
		t.Fatal("began over the limit")
	}
	w.database.Admin(t, `update follow_ups set created_at = now() - interval '1 minute'`)
	var sweeps sync.WaitGroup
	begun := make(chan []protocol.StartedTurn, 4)
	for range cap(begun) {
		sweeps.Go(func() {
			started, err := w.directory.StandingQueues(context.Background(), w.node, 10, beginTurn)
			if err != nil {
				t.Error(err)
			}
			begun <- started
		})
	}
	sweeps.Wait()
	total := 0
	for range cap(begun) {
		for _, s := range <-begun {
			total++
			if s.Spec.Input != "two" || *s.Spec.ParentMessageID != turn.spec.AssistantMessageID {
				t.Errorf("began %+v", s.Spec)
			}
		}
	}
	if total != 1 {
		t.Errorf("%d turns began", total)
	}
}

func TestQueueIsBounded(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	for i := 0; ; i++ {
		start := w.request(&turn.spec.ConversationID, "more")
		start.IfBusy = protocol.BusyQueue
		_, err := w.try(start)
		if err == nil && i < protocol.MaxFollowUps {
			continue
		}
		if i != protocol.MaxFollowUps || protocol.CodeOf(err) != protocol.CodeTooManyFollowUps {
			t.Errorf("item %d: %v", i, err)
		}
		return
	}
}

func TestDirectoryTakesOverFromTheDead(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	turn.append(2)
	heir := protocol.NewNodeID()
	w.must(w.directory.Register(t.Context(), heir, "heir:1", nil))
	if claims, err := w.directory.ClaimOrphans(t.Context(), heir, 20); err != nil || len(claims) != 0 {
		t.Fatalf("claimed from the living: %v, %v", claims, err)
	}
	w.must(w.directory.Renew(t.Context(), w.node))
	seen, err := w.directory.Renewals(t.Context())
	w.must(err)
	if buried, err := w.directory.Bury(t.Context(), w.node, seen[w.node]-1); err != nil || buried {
		t.Fatalf("buried on an old look: %v, %v", buried, err)
	}
	if buried, err := w.directory.Bury(t.Context(), w.node, seen[w.node]); err != nil || !buried {
		t.Fatalf("not buried: %v, %v", buried, err)
	}
	if err := w.directory.Renew(t.Context(), w.node); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("the dead renews: %v", err)
	}
	claims, err := w.directory.ClaimOrphans(t.Context(), heir, 20)
	want := []protocol.Claim{{AccountID: w.account, TurnID: turn.spec.TurnID, Epoch: 2, Cause: "node_lost", Adoptions: 1}}
	if err != nil || !cmp.Equal(claims, want) {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	if err := w.append(turn.chunk(1)); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("the dead appends: %v", err)
	}
	if _, err := w.turns.FinishTurn(t.Context(), turn.finish()); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("the dead finishes: %v", err)
	}
	w.node, turn.epoch = heir, 2
	stored, err := w.turns.LoadTurn(t.Context(), w.account, turn.spec.TurnID)
	if err != nil || !bytes.Equal(stored.Frames, turn.frames) || stored.Head.Epoch != 2 || stored.Head.LastSequence != turn.next-1 {
		t.Errorf("loaded %+v, %v", stored, err)
	}
	turn.append(1)

	claim, err := w.directory.ReclaimTurn(t.Context(), heir, w.account, turn.spec.TurnID, 2)
	if err != nil || claim.Epoch != 3 || claim.Cause != "actor_lost" {
		t.Errorf("reclaimed %+v, %v", claim, err)
	}
	if _, err := w.directory.ReclaimTurn(t.Context(), heir, w.account, turn.spec.TurnID, 2); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("reclaimed twice: %v", err)
	}
	if own, err := w.directory.OwnTurns(t.Context(), heir); err != nil || len(own) != 1 || own[0].Epoch != 3 {
		t.Errorf("own turns %+v, %v", own, err)
	}
	w.must(w.directory.Drain(t.Context(), heir))
	if released, err := w.directory.Release(t.Context(), heir); err != nil || released != 1 {
		t.Errorf("released %d, %v", released, err)
	}
	if claims, err := w.directory.ClaimOrphans(t.Context(), heir, 20); err != nil || len(claims) != 0 {
		t.Errorf("a draining node claimed %+v, %v", claims, err)
	}
	w.must(w.directory.Leave(t.Context(), heir))
	third := protocol.NewNodeID()
	w.must(w.directory.Register(t.Context(), third, "", nil))
	if claims, err := w.directory.ClaimOrphans(t.Context(), third, 20); err != nil || len(claims) != 1 || claims[0].Cause != "drain" || claims[0].Epoch != 4 {
		t.Errorf("claimed %+v, %v", claims, err)
	}
}

func TestRestartBuriesItsPredecessorAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start(w.request(nil, "one"))
	successor := protocol.NewNodeID()
	w.must(w.directory.Register(t.Context(), successor, "", &w.node))
	claims, err := w.directory.ClaimOrphans(t.Context(), successor, 20)
	if err != nil || len(claims) != 1 || claims[0].Cause != "restart" {
		t.Errorf("claimed %+v, %v", claims, err)
	}
}

func TestOrphansAreClaimedOnce(t *testing.T) {
	w := newWorld(t)
	const turns = 30
	for range turns {
		start := w.request(nil, "hello")
		start.MaxLiveTurns = turns
		w.start(start)
	}
	w.must(w.directory.Leave(t.Context(), w.node))
	var claiming sync.WaitGroup
	claimed := make(chan protocol.Claim, 2*turns)
	for range 3 {
		node := protocol.NewNodeID()
		w.must(w.directory.Register(t.Context(), node, node.String(), nil))
		claiming.Go(func() {
			for {
				claims, err := w.directory.ClaimOrphans(context.Background(), node, 7)
				if err != nil || len(claims) == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				for _, claim := range claims {
					claimed <- claim
				}
			}
		})
	}
	claiming.Wait()
	seen := map[protocol.TurnID]bool{}
	for range len(claimed) {
		claim := <-claimed
		if seen[claim.TurnID] || claim.Epoch != 2 {
			t.Errorf("claimed again: %+v", claim)
		}
		seen[claim.TurnID] = true
	}
	if len(seen) != turns {
		t.Errorf("%d of %d claimed", len(seen), turns)
	}
}
