package research_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/operator"
	"turnstone/persistence/projects"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

// world is a node with a conversation in which research tasks start.
type world struct {
	*storetest.World
	conversation protocol.ConversationID
}

func newWorld(t *testing.T) *world {
	w := storetest.NewWorld(t)
	return &world{w, storetest.NewConversation(t, w.DB, w.Account, "Tides").ConversationID}
}

// task is a task with the position of its log.
type task struct {
	*world
	spec  *researchlog.Spec
	claim researchlog.Claimed
	node  protocol.NodeID
	next  int64 // sequence
	entry int64
}

// unstored returns a new task that is not stored yet.
func (w *world) unstored(account protocol.AccountID, conversation protocol.ConversationID) *task {
	return &task{world: w, node: w.Node, next: 1, entry: 1, spec: &researchlog.Spec{
		AccountID: account, TaskID: protocol.NewTaskID(), ConversationID: conversation, Question: "Why do marmalade tides differ?",
		Depth: protocol.ResearchQuick, Sources: []protocol.ResearchSource{protocol.ResearchWeb}, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}}
}

func (w *world) start(account protocol.AccountID, conversation protocol.ConversationID) *task {
	w.Helper()
	of := w.unstored(account, conversation)
	begin := of.batch(protocol.ResearchQueued, 0)
	_, err := w.DB.Research.Create(w.Context(), of.spec, begin)
	w.Must(err)
	of.next++
	return of
}

// batch returns a batch with one event and some entries.
func (of *task) batch(state protocol.ResearchState, entries int) *researchlog.Append {
	of.Helper()
	frames, err := protocol.AppendResearchEvents(nil, of.spec.TaskID, of.next, of.spec.CreatedAt, []protocol.Payload{&protocol.ResearchStateChanged{State: state}})
	of.Must(err)
	b := &researchlog.Append{
		AccountID: of.spec.AccountID, TaskID: of.spec.TaskID, Owner: of.node, Epoch: of.claim.Epoch, First: of.next, Last: of.next, Frames: frames,
		FirstEntry: of.entry, At: of.spec.CreatedAt,
		Task: protocol.ResearchTask{
			TaskID: of.spec.TaskID, ConversationID: of.spec.ConversationID, Question: of.spec.Question, Depth: of.spec.Depth, Sources: of.spec.Sources,
			State: state, Plan: []protocol.ResearchStep{}, LastSequence: of.next, Version: of.next, CreatedAt: of.spec.CreatedAt,
		},
	}
	for n := range entries {
		b.Entries = append(b.Entries, researchlog.Entry{Kind: researchlog.EntryResult, Step: fmt.Sprintf("read-%d", of.entry+int64(n))})
	}
	return b
}

// store stores a batch that must not be fenced.
func (of *task) store(b *researchlog.Append) {
	of.Helper()
	of.Must(of.DB.Research.Append(of.Context(), b))
	of.next, of.entry = b.Last+1, b.FirstEntry+int64(len(b.Entries))
}

// claimed lets a node claim tasks, and notes the claim of this one. It reports whether it is among them.
func (of *task) claimed(node protocol.NodeID) bool {
	of.Helper()
	claims, err := of.DB.Research.ClaimDue(of.Context(), node, 100, 100)
	of.Must(err)
	for _, c := range claims {
		if c.TaskID == of.spec.TaskID {
			of.claim, of.node = c, node
			return true
		}
	}
	return false
}

func (of *task) wantFenced(b *researchlog.Append, what string) {
	of.Helper()
	if err := of.DB.Research.Append(of.Context(), b); !errors.Is(err, ownership.ErrFenced) {
		of.Errorf("%s: %v", what, err)
	}
}

func TestATaskIsClaimedUntilItsEndAndItsEventsAreStoredOnce(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	of.wantFenced(of.batch(protocol.ResearchRunning, 1), "without an owner")
	if !of.claimed(w.Node) {
		t.Fatal("the task is not claimed")
	}
	first := of.batch(protocol.ResearchRunning, 2)
	of.store(first)
	w.Must(w.DB.Research.Append(t.Context(), first)) // its response was lost
	loaded, err := w.DB.Research.Load(t.Context(), of.claim, w.Node)
	w.Must(err)
	if loaded.Attempts != 0 {
		t.Errorf("%+v", loaded)
	}
	frames, last, err := w.DB.Research.Frames(t.Context(), w.Account, of.spec.TaskID, 1)
	w.Must(err)
	if string(frames) != string(first.Frames) || last != first.Last {
		t.Errorf("after 1: %s", frames)
	}
	of.store(of.batch(protocol.ResearchCancelled, 1))
	if of.claimed(w.Node) {
		t.Error("claimed after its end")
	}
}

func TestATaskIsAdoptedWhenItsOwnerHasEnded(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	of.claimed(w.Node)
	of.store(of.batch(protocol.ResearchRunning, 1))
	heir := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: heir}))
	if of.claimed(heir) {
		t.Fatal("claimed from a node that is alive")
	}
	old := of.claim
	again, err := w.DB.Research.ClaimLost(t.Context(), old, w.Node)
	w.Must(err)
	if _, err := w.DB.Research.ClaimLost(t.Context(), old, w.Node); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("claimed twice: %v", err)
	}
	of.claim = again
	if released, err := w.DB.Research.Release(t.Context(), w.Node); err != nil || released != 1 {
		t.Errorf("released %d (%v)", released, err)
	}
	of.wantFenced(of.batch(protocol.ResearchRunning, 1), "after the release")
	if !of.claimed(heir) {
		t.Fatal("a released task is not claimed")
	}
	of.store(of.batch(protocol.ResearchRunning, 1))
	if own, err := w.DB.Research.Owned(t.Context(), heir); err != nil || len(own) != 1 || own[0] != of.claim {
		t.Errorf("%+v (%v)", own, err)
	}
	w.Database.Admin(t, `update nodes set dead = true where node_id = $1`, heir)
	for attempt := range 3 {
		if !of.claimed(w.Node) {
			t.Fatal("not claimed from a dead node")
		}
		loaded, err := w.DB.Research.Load(t.Context(), of.claim, w.Node)
		w.Must(err)
		if loaded.Attempts != attempt+1 {
			t.Errorf("%d attempts, want %d", loaded.Attempts, attempt+1)
		}
		w.Database.Admin(t, `update research_tasks set owner = $1`, heir)
	}
}

// A command claims a task that waits. If the command is not stored, its node owns a task for which it may have no slot.
func TestATaskThatWaitsIsReleasedWhenItHasNoActor(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	taken, err := w.DB.Research.ClaimAny(t.Context(), w.Account, of.spec.TaskID, w.Node)
	w.Must(err)
	if own, err := w.DB.Research.Owned(t.Context(), w.Node); err != nil || len(own) != 1 || own[0] != taken {
		t.Fatalf("%+v (%v)", own, err)
	}
	if again, err := w.DB.Research.ClaimLost(t.Context(), taken, w.Node); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("again %+v (%v)", again, err)
	}
	if _, err := w.DB.Research.Load(t.Context(), taken, w.Node); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("the former claim loads the task (%v)", err)
	}
	if own, err := w.DB.Research.Owned(t.Context(), w.Node); err != nil || len(own) != 0 {
		t.Errorf("the node still owns %+v (%v)", own, err)
	}
	if claims, err := w.DB.Research.ClaimDue(t.Context(), w.Node, 10, 0); err != nil || len(claims) != 0 {
		t.Errorf("a node without a slot claims %+v (%v)", claims, err)
	}
	if !of.claimed(w.Node) {
		t.Fatal("a node with a slot does not claim the task")
	}
	loaded, err := w.DB.Research.Load(t.Context(), of.claim, w.Node)
	if w.Must(err); loaded.Attempts != 1 {
		t.Errorf("%d attempts", loaded.Attempts)
	}
}

func TestAnAccountRunsAFewTasksAndTheOthersWaitInOrder(t *testing.T) {
	w := newWorld(t)
	other := w.OtherAccount()
	elsewhere := storetest.NewConversation(t, w.DB, other, "Tides").ConversationID
	var mine []*task
	for range protocol.MaxResearchRunning + 2 {
		mine = append(mine, w.start(w.Account, w.conversation))
	}
	theirs := w.start(other, elsewhere)
	claims, err := w.DB.Research.ClaimDue(t.Context(), w.Node, 10, 2)
	w.Must(err)
	if len(claims) != 2 || claims[0].TaskID != mine[0].spec.TaskID && claims[1].TaskID != mine[0].spec.TaskID {
		t.Fatalf("%+v", claims)
	}
	claims, err = w.DB.Research.ClaimDue(t.Context(), w.Node, 10, 100)
	w.Must(err)
	got := []protocol.TaskID{}
	for _, c := range claims {
		got = append(got, c.TaskID)
	}
	if len(got) != 2 || !slices.Contains(got, mine[2].spec.TaskID) || !slices.Contains(got, theirs.spec.TaskID) {
		t.Errorf("%v", got)
	}
	if mine[3].claimed(w.Node) {
		t.Error("more tasks of an account run than the limit")
	}
	if claims, err := w.DB.Research.ClaimDue(t.Context(), protocol.NewNodeID(), 10, 10); err != nil || len(claims) != 0 {
		t.Errorf("a node that is not registered claims %+v (%v)", claims, err)
	}
	if _, err := w.DB.Research.ClaimAny(t.Context(), other, mine[0].spec.TaskID, w.Node); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account claims a task: %v", err)
	}
}

func TestADeletedConversationEndsItsTasks(t *testing.T) {
	w := newWorld(t)
	of, waits := w.start(w.Account, w.conversation), w.start(w.Account, w.conversation)
	of.claimed(w.Node)
	live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: w.conversation})
	w.Must(err)
	if live == nil || live.WillDelete["live_tasks"] != 2 {
		t.Fatalf("%+v", live)
	}
	live, err = w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: w.conversation, Tasks: 1})
	if w.Must(err); live == nil {
		t.Fatal("deleted with more tasks than were confirmed")
	}
	live, err = w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: w.conversation, Tasks: 2})
	if w.Must(err); live != nil {
		t.Fatalf("%+v", live)
	}
	of.wantFenced(of.batch(protocol.ResearchRunning, 1), "after the deletion")
	if of.claimed(w.Node) || waits.claimed(w.Node) {
		t.Error("a task of a deleted conversation is claimed")
	}
	_, err = w.DB.Research.Task(t.Context(), w.Account, of.spec.TaskID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	for done := false; !done; {
		done, err = w.DB.Conversations.PurgeConversation(t.Context(), w.Account, w.conversation, 100)
		w.Must(err)
	}
	for _, table := range []string{"research_tasks", "research_events", "research_entries", "research_sources"} {
		if n := w.Count(`select count(*) from ` + table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

func TestADeletedProjectHoldsItsTasksUntilItIsRestored(t *testing.T) {
	w := newWorld(t)
	project, err := w.DB.Projects.CreateProject(t.Context(), w.Account, "Sea", nil)
	w.Must(err)
	inProject, err := w.DB.Conversations.CreateConversation(t.Context(), w.Account, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: "Tides", ProjectID: &project.ProjectID,
	})
	w.Must(err)
	of := w.start(w.Account, inProject.ConversationID)
	of.claimed(w.Node)
	of.store(of.batch(protocol.ResearchRunning, 1))
	newest := protocol.AnyVersion
	deletion := &projects.Deletion{Change: projects.Change{ProjectID: project.ProjectID, Version: &newest}}
	_, _, err = w.DB.Projects.DeleteProject(t.Context(), w.Account, deletion)
	w.Must(err)
	of.wantFenced(of.batch(protocol.ResearchRunning, 1), "after the deletion of the project")
	if of.claimed(w.Node) {
		t.Error("a task of a deleted project is claimed")
	}
	_, err = w.DB.Projects.RestoreProject(t.Context(), w.Account, &deletion.Change, audit.Requester{})
	w.Must(err)
	if !of.claimed(w.Node) {
		t.Fatal("a task of a restored project is not claimed")
	}
	of.store(of.batch(protocol.ResearchRunning, 1))
}

func TestTheReportOfATaskIsStoredOnce(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	of.claimed(w.Node)
	of.store(of.batch(protocol.ResearchRunning, 1))
	url := "https://tides.example/"
	b := of.batch(protocol.ResearchCompleted, 1)
	b.Sources = []researchlog.Source{{Ordinal: 0, ResearchKeptSource: protocol.ResearchKeptSource{
		SourceID: "s1", Kind: protocol.ResearchWeb, Title: "Tides", URL: &url, AccessedAt: of.spec.CreatedAt, SHA256: "00",
		Excerpts: []protocol.ResearchExcerpt{{ExcerptID: "s1e1", Text: "Tides differ.", Locator: "paragraph 1"}},
	}}}
	b.Task.Spent.Tokens = 12
	b.Usage = protocol.Usage{InputTokens: 10, OutputTokens: 2}
	artifact := protocol.DeriveReportID(of.spec.TaskID)
	b.Report = &researchlog.Report{
		ConversationID: w.conversation, ArtifactID: artifact, MessageID: protocol.NewMessageID(), Title: "Why tides differ", Content: "# Tides\n\nTides differ [1].\n",
		Notice: "Tides differ [1].", Citations: []protocol.Citation{{Index: 1, Title: "Tides", Marker: "[1]"}},
	}
	for n := range 3 {
		b.Report.PartIDs = append(b.Report.PartIDs, protocol.DeriveReportPartID(of.spec.TaskID, n+1))
	}
	w.Must(w.DB.Research.CheckReport(t.Context(), w.Account, w.conversation, len(b.Report.Content)))
	of.store(b)
	w.Must(w.DB.Research.Append(t.Context(), b)) // its response was lost
	if n := w.Count(`select count(*) from messages`); n != 1 {
		t.Errorf("%d messages", n)
	}
	if n := w.Count(`select count(*) from artifact_versions`); n != 1 {
		t.Errorf("%d versions of the report", n)
	}
	if n := w.Count(`select count(*) from usage_records where kind = 'research'`); n != 1 {
		t.Errorf("%d records of the usage", n)
	}
	sources, next, err := w.DB.Research.Sources(t.Context(), w.Account, of.spec.TaskID, -1, 10)
	w.Must(err)
	if len(sources) != 1 || next != nil || sources[0].Excerpts[0].Text != "Tides differ." {
		t.Errorf("%+v, %v", sources, next)
	}
}

func TestTasksAreFoundByTheirQuestions(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	find := func(account protocol.AccountID) []protocol.SearchResult {
		t.Helper()
		found, _, err := w.DB.Search.Find(t.Context(), account, &search.Query{Text: "marmal", Limit: 10})
		w.Must(err)
		return found
	}
	for range 2 { // pending, then indexed
		found := find(w.Account)
		if len(found) != 1 || found[0].Kind != protocol.SearchTask || *found[0].TaskID != of.spec.TaskID || *found[0].ConversationID != w.conversation || found[0].Title != of.spec.Question {
			t.Fatalf("%+v", found)
		}
		if foreign := find(w.OtherAccount()); len(foreign) != 0 {
			t.Errorf("another account finds %+v", foreign)
		}
		w.Must(w.DB.Search.Index(t.Context()))
	}
	if n := w.Count(`select count(*) from search_rows where kind = 'task'`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestTasksFromBeforeTheIndexAreFound(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	w.Must(w.DB.Search.Index(t.Context()))
	w.Database.Admin(t, `delete from search_rows`)
	w.Database.Admin(t, `insert into search_backfill values ('task', '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000')`)
	w.Must(w.DB.Search.Index(t.Context()))
	found, _, err := w.DB.Search.Find(t.Context(), w.Account, &search.Query{Text: "marmalade", Limit: 10})
	w.Must(err)
	if len(found) != 1 || *found[0].TaskID != of.spec.TaskID {
		t.Errorf("found %+v", found)
	}
}

func TestStartsInDifferentConversationsDoNotExceedTheLimit(t *testing.T) {
	w := newWorld(t)
	for range protocol.MaxResearchWaiting - 1 {
		w.start(w.Account, w.conversation)
	}
	const atOnce = 8
	started := make(chan error, atOnce)
	for range atOnce {
		other := storetest.NewConversation(t, w.DB, w.Account, "More tides").ConversationID
		of := w.unstored(w.Account, other)
		go func() {
			_, err := w.DB.Research.Create(t.Context(), of.spec, of.batch(protocol.ResearchQueued, 0))
			started <- err
		}()
	}
	succeeded := 0
	for range atOnce {
		switch err := <-started; {
		case err == nil:
			succeeded++
		case protocol.CodeOf(err) != protocol.CodeTooManyTasks:
			t.Error(err)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d tasks started, want 1", succeeded)
	}
	another := w.unstored(w.Account, w.conversation)
	if err := w.DB.Research.CanCreate(t.Context(), another.spec); protocol.CodeOf(err) != protocol.CodeTooManyTasks {
		t.Errorf("the check of another start: %v", err)
	}
	another.spec.ConversationID = protocol.NewConversationID()
	if err := w.DB.Research.CanCreate(t.Context(), another.spec); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("the check of a start in a missing conversation: %v", err)
	}
}

func TestTheTasksOfADisabledAccountAreCancelled(t *testing.T) {
	w := newWorld(t)
	of := w.start(w.Account, w.conversation)
	w.Must(w.DB.Operator.DisableAccount(t.Context(), w.Account, time.Now(), audit.Requester{}))
	var cancelled []protocol.TaskID
	err := w.DB.Operator.StopAccount(t.Context(), w.Account, operator.Cancel{Task: func(_ context.Context, _ protocol.AccountID, task protocol.TaskID) error {
		cancelled = append(cancelled, task)
		return nil
	}})
	var later *river.JobSnoozeError // the job runs again to check whether the task has ended
	if !errors.As(err, &later) || len(cancelled) != 1 || cancelled[0] != of.spec.TaskID {
		t.Errorf("cancelled %v, %v", cancelled, err)
	}
}
