package turns_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

func TestAStartedTurnIsStoredWithItsMessages(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello \"world\""))
	read, err := w.Turns.GetTurn(t.Context(), w.Account, turn.Spec.TurnID)
	w.Must(err)
	if read.State != protocol.TurnRunning || !read.AcceptingSteering || read.LastSequence != 1 || read.MessageID != turn.Spec.AssistantMessageID ||
		read.Profile != protocol.ProfileBalanced || read.ConversationID != turn.Spec.ConversationID {
		t.Errorf("the turn is %+v", read)
	}
	head, err := w.Turns.TurnHead(t.Context(), w.Account, turn.Spec.TurnID)
	w.Must(err)
	if head.Owner == nil || *head.Owner != w.Node || head.Epoch != 1 || head.OwnerDead || head.LastSequence != 1 || !head.Accepts {
		t.Errorf("the head is %+v", head)
	}
	stored, err := w.Turns.LoadTurn(t.Context(), w.Account, turn.Spec.TurnID)
	w.Must(err)
	if diff := cmp.Diff(turn.Spec, stored.Spec); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(stored.Frames, turn.Frames) {
		t.Error("the log is not what was stored")
	}
	page, err := w.DB.Conversations.Messages(t.Context(), w.Account, &conversations.MessageQuery{ConversationID: turn.Spec.ConversationID, Limit: 10})
	w.Must(err)
	if len(page.Messages) != 2 || page.Messages[0].Parts[0].Text != "hello \"world\"" || page.Messages[1].Status != protocol.MessageStreaming ||
		page.Messages[0].MessageID != turn.Spec.UserMessageID || page.Messages[1].CoversSequence != 1 {
		t.Errorf("the messages are %+v", page.Messages)
	}
	other := pgtest.Account(t, w.DB)
	if _, err := w.Turns.GetTurn(t.Context(), other, turn.Spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account reads it: %v", err)
	}
	if _, _, err := w.Turns.TurnFrames(t.Context(), other, turn.Spec.TurnID, 0, 1000); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account follows it: %v", err)
	}
}

func TestSameBytesLiveAndFinished(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	for n := 1; n <= 7; n++ {
		turn.Append(n)
	}
	compare := func(when string) {
		t.Helper()
		for after := int64(0); after <= turn.Next; after++ {
			for _, page := range []int{1, 300, 1 << 20} {
				if want := protocol.SkipFrames(turn.Frames, after); !bytes.Equal(turn.Read(after, page), want) {
					t.Fatalf("%s, after %d, pages of %d: other bytes", when, after, page)
				}
			}
		}
	}
	compare("live")
	turn.End(nil)
	compare("finished")
	w.Database.Admin(t, `truncate turn_events`)
	compare("folded")
}

// After a crash, all readers of a node read the ends of their logs at once. Each row of a log may be on a page of its
// own.
func TestTheEndOfALongLogIsReadWithoutItsBeginning(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	const rows, left = 100, 3
	for range rows {
		turn.Append(1)
	}
	conn, err := pgx.Connect(t.Context(), w.Database.AdminURL)
	w.Must(err)
	defer func() { w.Must(conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `set enable_seqscan = off; set enable_bitmapscan = off; set role turnstone_app`) // the plan of a large table
	w.Must(err)
	// Row-level security applies to requests, and decides which conditions an index serves.
	_, err = conn.Exec(t.Context(), `select set_config('turnstone.account_id', $1, false)`, protocol.NodeID(w.Account).String())
	w.Must(err)
	var plan string
	w.Must(conn.QueryRow(t.Context(), `explain (analyze, format json, timing off, costs off)`+turns.ReadEventsSQL,
		turn.Spec.AccountID, turn.Spec.TurnID, turn.Next-1-left, 1<<20).Scan(&plan))
	read := 0
	for _, match := range regexp.MustCompile(`"(?:Actual Rows|Rows Removed by Filter)": (\d+)`).FindAllStringSubmatch(plan, -1) {
		n, err := strconv.Atoi(match[1])
		w.Must(err)
		read = max(read, n)
	}
	if read != left {
		t.Errorf("%d rows were read, want %d:\n%s", read, left, plan)
	}
}

func TestFinishFoldsTheTurn(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	turn.Append(3)
	finish := turn.Finish()
	started, err := w.Turns.FinishTurn(t.Context(), finish, w.Runner)
	if err != nil || started != nil {
		t.Fatalf("%v, %v", started, err)
	}
	if again, err := w.Turns.FinishTurn(t.Context(), finish, w.Runner); err != nil || again != nil {
		t.Errorf("the same finish again: %v, %v", again, err)
	}
	foreign := *finish
	foreign.Epoch++
	if _, err := w.Turns.FinishTurn(t.Context(), &foreign, w.Runner); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("another epoch's finish: %v", err)
	}
	read, err := w.Turns.GetTurn(t.Context(), w.Account, turn.Spec.TurnID)
	w.Must(err)
	if read.State != protocol.TurnCompleted || *read.StopReason != protocol.StopEndTurn || *read.Usage != finish.Usage ||
		read.LastSequence != finish.Last || read.AcceptingSteering || read.FinishedAt == nil {
		t.Errorf("the turn is %+v", read)
	}
	message, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, turn.Spec.AssistantMessageID)
	w.Must(err)
	if message.Status != protocol.MessageComplete || message.Parts[0].Text != "answer" || *message.ModelID != "scripted-1" || *message.Usage != finish.Usage {
		t.Errorf("the message is %+v", message)
	}
	usage, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[int], `select count(*) from usage_records where source = 'server' and kind = 'turn'`)
	if err != nil || usage != 1 {
		t.Errorf("%d usage records (%v)", usage, err)
	}
	w.Database.Admin(t, `do $$ begin if (select count(*) from river.river_job where kind = 'title') <> 1 then raise 'no title job'; end if; end $$`)
	next := w.Start(w.Request(&turn.Spec.ConversationID, "and then?")) // the conversation is free
	if *next.Spec.ParentMessageID != turn.Spec.AssistantMessageID || next.Spec.PreviousProfile != protocol.ProfileBalanced {
		t.Errorf("the parent of the next turn is %v", next.Spec.ParentMessageID)
	}
}

// TestAStartStoresAProvisionalTitleAndHowTheProfileWasChosen covers both statements that start a turn: in a new and in
// an existing conversation.
func TestAStartStoresAProvisionalTitleAndHowTheProfileWasChosen(t *testing.T) {
	w := storetest.NewWorld(t)
	existing := storetest.NewConversation(t, w.DB, w.Account, "").ConversationID
	for name, conversation := range map[string]*protocol.ConversationID{"new": nil, "existing": &existing} {
		request := w.Request(conversation, "  Refactor the\n parser, please")
		w.Runner.Begin = func(spec *turnlog.Spec) (turnlog.Begin, error) {
			begin, err := storetest.BeginTurn(spec)
			spec.Routing.Profile, spec.Routing.Reason = protocol.ProfileCoding, "The message is about software work."
			spec.Routing.Intelligence = protocol.Intelligence{Requested: protocol.ProfileAuto, Resolved: protocol.ProfileCoding}
			return begin, err
		}
		turn := w.Start(request)
		w.Runner.Begin = storetest.BeginTurn
		id := turn.Spec.ConversationID
		turn.End(func(f *turnlog.Finish) { f.State, f.Status = protocol.TurnCancelled, protocol.MessageCancelled })
		read := func() *protocol.Conversation {
			c, err := w.DB.Conversations.Conversation(t.Context(), w.Account, id)
			w.Must(err)
			return c
		}
		if c := read(); c.Title != "Refactor the parser, please" || c.TitleSource != "auto" || c.Version != 1 {
			t.Errorf("%s: the conversation is %+v", name, c)
		}
		next := w.Start(w.Request(&id, "Something else"))
		next.End(nil) // completed: a title is generated
		if c := read(); c.Title != "Refactor the parser, please" {
			t.Errorf("%s: the second message changed the title: %+v", name, c)
		}
		answer, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, turn.Spec.AssistantMessageID)
		w.Must(err)
		want := protocol.MessageRouting{Requested: protocol.ProfileAuto, Resolved: protocol.ProfileCoding, Reason: "The message is about software work."}
		if answer.Routing == nil || *answer.Routing != want || *answer.Profile != protocol.ProfileCoding {
			t.Errorf("%s: the answer has the routing %+v", name, answer.Routing)
		}
		for _, id := range []protocol.MessageID{turn.Spec.UserMessageID, next.Spec.AssistantMessageID} { // BeginTurn requests a profile
			if m, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, id); err != nil || m.Routing != nil {
				t.Errorf("%s: a message that auto did not route: %+v, %v", name, m, err)
			}
		}
		fork, err := w.DB.Conversations.ForkConversation(t.Context(), w.Account, id, turn.Spec.AssistantMessageID, "", nil)
		w.Must(err)
		copies, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, *fork.HeadMessageID)
		w.Must(err)
		if fork.Title == "" || copies.Routing == nil || *copies.Routing != want {
			t.Errorf("%s: the fork is %q, its answer has the routing %+v", name, fork.Title, copies.Routing)
		}
		set, err := w.DB.Conversations.SetAutoTitle(t.Context(), w.Account, id, "Parser work")
		if c := read(); err != nil || !set || c.Title != "Parser work" {
			t.Errorf("%s: a generated title does not replace the provisional one: %+v, %v", name, c, err)
		}
	}
	w.Database.Admin(t, `do $$ begin if (select count(*) from river.river_job where kind = 'title') <> 2 then raise 'want a title job of each conversation'; end if; end $$`)
}

func TestStartChecksConversationHeadAndBusyTurn(t *testing.T) {
	w := storetest.NewWorld(t)
	none := protocol.NewConversationID()
	if _, err := w.Try(w.Request(&none, "hello")); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("an unknown conversation: %v", err)
	}
	turn := w.Start(w.Request(nil, "hello"))
	conversation := &turn.Spec.ConversationID
	_, err := w.Try(w.Request(conversation, "again"))
	var conflict *protocol.Error
	if !errors.As(err, &conflict) || conflict.Code != protocol.CodeTurnInProgress ||
		fmt.Sprint(conflict.Current) != fmt.Sprint(map[string]protocol.TurnID{"turn_id": turn.Spec.TurnID}) {
		t.Errorf("a busy conversation: %v", err)
	}
	steer := w.Request(conversation, "again")
	steer.IfBusy = protocol.BusySteer
	if result, err := w.Try(steer); err != nil || result.Busy == nil || *result.Busy != turn.Spec.TurnID {
		t.Errorf("steering: %+v, %v", result, err)
	}
	turn.End(nil)
	stale := w.Request(conversation, "again")
	stale.Expected = &turnlog.ExpectedHead{ID: &turn.Spec.UserMessageID}
	if _, err := w.Try(stale); protocol.CodeOf(err) != protocol.CodeHeadMoved {
		t.Errorf("a stale head: %v", err)
	}
	stale.Expected.ID = nil
	if _, err := w.Try(stale); protocol.CodeOf(err) != protocol.CodeHeadMoved {
		t.Errorf("an empty head: %v", err)
	}
	if _, err := w.Try(w.Request(conversation, "")); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("no input: %v", err)
	}
	stale.Expected.ID = &turn.Spec.AssistantMessageID
	w.Start(stale)
}

func TestLiveTurnsOfAnAccountAreBounded(t *testing.T) {
	w := storetest.NewWorld(t)
	var running sync.WaitGroup
	results := make(chan error, 4*storetest.MaxLiveTurns)
	for range cap(results) {
		running.Go(func() {
			_, err := w.Try(w.Request(nil, "hello"))
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
	if begun != storetest.MaxLiveTurns {
		t.Errorf("%d turns started, want %d", begun, storetest.MaxLiveTurns)
	}
}

func TestOneOfManyStartsInAConversationWins(t *testing.T) {
	w := storetest.NewWorld(t)
	first := w.Start(w.Request(nil, "hello"))
	first.End(nil)
	var running sync.WaitGroup
	results := make(chan error, 8)
	for i := range cap(results) {
		running.Go(func() {
			start := w.Request(&first.Spec.ConversationID, fmt.Sprint("number ", i))
			start.Expected = &turnlog.ExpectedHead{ID: &first.Spec.AssistantMessageID}
			_, err := w.Try(start)
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
		t.Errorf("%d turns started", begun)
	}
}

func TestADrainingNodeStartsNoTurns(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Must(w.Directory.Drain(t.Context(), w.Node))
	if _, err := w.Try(w.Request(nil, "hello")); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a draining node returned %v", err)
	}
}

// Each branch stores its whole path as a list of segments of other branches, so the depth of nesting is limited.
func TestBranchesAreNotNestedWithoutBound(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	turn.End(nil)
	const most = 1000
	nest := func(branches int) {
		w.Database.Admin(t, `
			insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
			select account_id, branch_id, branch_id, 2000000000 + n, 2000000000 + n
			from branch_segments cross join generate_series(1, $1) n where branch_id = $2 and from_depth = 1
			on conflict do nothing`, branches-1, turn.Spec.BranchID)
	}
	regenerate := w.Request(&turn.Spec.ConversationID, "")
	regenerate.Branch = &protocol.BranchRequest{MessageID: turn.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	create := func() error {
		_, err := w.DB.Conversations.CreateBranch(t.Context(), w.Account, turn.Spec.ConversationID, regenerate.Branch, "")
		return err
	}
	nest(most - 1)
	w.Must(create())
	w.Start(regenerate).End(nil)
	nest(most)
	storetest.WantCode(t, create(), protocol.CodeInvalid)
	_, err := w.Try(regenerate)
	storetest.WantCode(t, err, protocol.CodeInvalid)
	if _, err := w.DB.Conversations.ForkConversation(t.Context(), w.Account, turn.Spec.ConversationID, turn.Spec.AssistantMessageID, "", nil); err != nil {
		t.Errorf("a fork, which has only one segment: %v", err)
	}
}

func TestBranches(t *testing.T) {
	w := storetest.NewWorld(t)
	first := w.Start(w.Request(nil, "one"))
	first.End(nil)
	conversation := &first.Spec.ConversationID
	second := w.Start(w.Request(conversation, "two"))
	second.End(nil)

	regenerate := w.Request(conversation, "")
	regenerate.Branch = &protocol.BranchRequest{MessageID: second.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	again := w.Start(regenerate)
	if again.Spec.UserMessageID != second.Spec.UserMessageID || again.Spec.Input != "two" || again.Spec.BranchID == second.Spec.BranchID ||
		*again.Spec.ParentMessageID != first.Spec.AssistantMessageID || again.Spec.PreviousProfile != protocol.ProfileBalanced {
		t.Errorf("regenerated as %+v", again.Spec)
	}
	again.End(nil)

	edit := w.Request(conversation, "uno")
	edit.Branch = &protocol.BranchRequest{MessageID: first.Spec.UserMessageID, Mode: protocol.BranchEdit}
	edited := w.Start(edit)
	if edited.Spec.ParentMessageID != nil || edited.Spec.PreviousProfile != "" {
		t.Errorf("edited as %+v", edited.Spec)
	}
	edited.End(nil)

	third := w.Start(w.Request(conversation, "three")) // continues the active branch
	third.End(nil)
	for _, c := range []struct {
		turn *storetest.Turn
		want string
	}{
		{second, "one answer two answer"}, {again, "one answer two answer"}, {edited, "uno answer"}, {third, "uno answer three answer"},
	} {
		if got := history(w, c.turn, 1<<20); got != c.want {
			t.Errorf("history %q, want %q", got, c.want)
		}
	}

	wrong := w.Request(conversation, "x")
	wrong.Branch = &protocol.BranchRequest{MessageID: first.Spec.AssistantMessageID, Mode: protocol.BranchEdit}
	if _, err := w.Try(wrong); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("editing an answer: %v", err)
	}
	wrong.Branch.MessageID = protocol.NewMessageID()
	if _, err := w.Try(wrong); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("editing nothing: %v", err)
	}

	prepared := &protocol.BranchRequest{MessageID: third.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	_, err := w.DB.Conversations.CreateBranch(t.Context(), w.Account, *conversation, prepared, "")
	w.Must(err)
	fourth := w.Start(w.Request(conversation, ""))
	if fourth.Spec.UserMessageID != third.Spec.UserMessageID || fourth.Spec.Input != "three" {
		t.Errorf("a prepared branch continues as %+v", fourth.Spec)
	}
	fourth.End(nil)
	if got, want := history(w, fourth, 1<<20), "uno answer three answer"; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

// history returns the text of the messages up to a turn's answer.
func history(w *storetest.World, turn *storetest.Turn, maxBytes int) string {
	w.Helper()
	s := turn.Spec
	messages, _, err := w.Turns.History(w.Context(), w.Account, s.ConversationID, s.BranchID, s.AssistantMessageID, 200, maxBytes)
	w.Must(err)
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Parts[0].Text)
	}
	return strings.Join(texts, " ")
}

func TestHistoryGoesBackAsFarAsAsked(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "0"))
	turn.End(nil)
	for i := 1; i < 70; i++ {
		turn = w.Start(w.Request(&turn.Spec.ConversationID, fmt.Sprint(i)))
		turn.End(nil)
	}
	s := turn.Spec
	all, more, err := w.Turns.History(t.Context(), w.Account, s.ConversationID, s.BranchID, s.AssistantMessageID, 200, 1<<20)
	w.Must(err)
	if len(all) != 140 || more || all[0].Parts[0].Text != "0" || all[138].Parts[0].Text != "69" {
		t.Errorf("%d messages, more %v", len(all), more)
	}
	some, more, err := w.Turns.History(t.Context(), w.Account, s.ConversationID, s.BranchID, s.UserMessageID, 7, 1<<20)
	w.Must(err)
	if !more || len(some) != 7 || some[0].Parts[0].Text != "66" || some[6].Parts[0].Text != "69" {
		t.Errorf("%d messages, more %v", len(some), more)
	}
}

func TestHistoryLeavesOutWholeMessagesAndNeverTheLast(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "short"))
	turn.End(nil)
	for _, input := range []string{strings.Repeat("a", 100_000), "long: " + noise(50_000)} { // one that compresses well
		turn = w.Start(w.Request(&turn.Spec.ConversationID, input))
		turn.End(nil)
	}
	s := turn.Spec
	for _, bound := range []struct{ bytes, messages int }{
		{0, 1}, {1000, 1}, {49_000, 1}, {51_000, 2}, {150_000, 2}, {1 << 20, 5},
	} {
		messages, more, err := w.Turns.History(t.Context(), w.Account, s.ConversationID, s.BranchID, s.UserMessageID, 100, bound.bytes)
		w.Must(err)
		if len(messages) != bound.messages || more != (bound.messages < 5) || !strings.HasPrefix(messages[len(messages)-1].Parts[0].Text, "long: ") {
			t.Errorf("within %d bytes: %d messages, more %v", bound.bytes, len(messages), more)
		}
	}
}

func TestTheNextFollowUpStartsWhenATurnEnds(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := &turn.Spec.ConversationID
	second, third := w.Queued(*conversation, "two"), w.Queued(*conversation, "three")
	started := turn.End(nil)
	if started == nil || started.Spec.Input != "two" || started.Spec.PreviousProfile != protocol.ProfileBalanced || *started.Spec.FollowUpID != second.FollowUpID || started.Epoch != 1 {
		t.Fatalf("the end started %+v", started)
	}
	next := w.Simulate(started.Spec, started.Begin)
	next.Append(1)
	parked := protocol.NewFollowUpID()
	if more := next.End(func(f *turnlog.Finish) {
		f.State, f.StopReason, f.Status, f.PauseQueue = protocol.TurnCancelled, protocol.StopCancelled, protocol.MessageCancelled, true
		f.Returned = []turnlog.ReturnedInput{{FollowUpID: parked, Text: "use JWT"}}
	}); more != nil {
		t.Errorf("the end of a cancelled turn started %+v", more)
	}
	queue, err := w.DB.FollowUps.ListFollowUps(t.Context(), w.Account, *conversation, true, nil, 10)
	w.Must(err)
	items := queue.Items
	var got []string
	for _, item := range items {
		got = append(got, item.Content+" "+string(item.State))
	}
	if want := []string{"two started", "three held", "use JWT held"}; !cmp.Equal(got, want) {
		t.Errorf("the queue is %q", got)
	}
	if items[1].FollowUpID != third.FollowUpID || items[2].FollowUpID != parked || *items[0].TurnID != next.Spec.TurnID {
		t.Errorf("the queue is %+v", items)
	}
}

func TestQueueIsBounded(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	for i := 0; ; i++ {
		start := w.Request(&turn.Spec.ConversationID, "more")
		start.IfBusy = protocol.BusyQueue
		_, err := w.Try(start)
		if err == nil && i < protocol.MaxFollowUps {
			continue
		}
		if i != protocol.MaxFollowUps || protocol.CodeOf(err) != protocol.CodeTooManyFollowUps {
			t.Errorf("item %d: %v", i, err)
		}
		return
	}
}

// Ten turns that wait for an approval count as one live turn: they cost little, but all of them may continue at once.
func TestWaitingTurnsCountTowardsTheLimit(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Start(w.Request(nil, "waits"))
	w.CopyWaiting(19)
	w.Start(w.Request(nil, "the last one")) // two that run, and one for the nineteen
	if live, err := w.Turns.CountLive(t.Context(), w.Account); err != nil || live != int64(w.Runner.MaxLiveTurns) {
		t.Errorf("%d live turns are counted (%v), want the limit of %d", live, err, w.Runner.MaxLiveTurns)
	}
	_, err := w.Try(w.Request(nil, "one too many"))
	storetest.WantCode(t, err, protocol.CodeTooManyLiveTurns)
}
