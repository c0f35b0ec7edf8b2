package turns_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/persistence/shares"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// projectWorld is a world with a project.
type projectWorld struct {
	*storetest.World
	project protocol.ProjectID
}

func newProjectWorld(t *testing.T) *projectWorld {
	t.Helper()
	w := &projectWorld{World: storetest.NewWorld(t)}
	made, err := w.DB.Projects.CreateProject(t.Context(), w.Account, "A", nil)
	w.Must(err)
	w.project = made.ProjectID
	return w
}

// change returns a change of the project as it is now.
func (w *projectWorld) change() *projects.Change {
	w.Helper()
	stored, err := w.DB.Projects.Project(w.Context(), w.Account, w.project)
	w.Must(err)
	return &projects.Change{ProjectID: w.project, Version: &stored.Version}
}

// delete deletes the project and returns the live turns that prevent it.
func (w *projectWorld) delete() []protocol.TurnID {
	w.Helper()
	_, live, err := w.DB.Projects.DeleteProject(w.Context(), w.Account, &projects.Deletion{Change: *w.change()})
	w.Must(err)
	return live
}

func (w *projectWorld) restore() {
	w.Helper()
	_, err := w.DB.Projects.RestoreProject(w.Context(), w.Account, w.change(), audit.Requester{})
	w.Must(err)
}

func (w *projectWorld) archive(archived bool) {
	w.Helper()
	_, err := w.DB.Projects.SetArchived(w.Context(), w.Account, w.change(), archived)
	w.Must(err)
}

// request returns the start of a turn; a nil conversation means a new one in the project.
func (w *projectWorld) request(conversation *protocol.ConversationID, input string) *turnlog.Start {
	start := w.Request(conversation, input)
	if conversation == nil {
		start.ProjectID = &w.project
	}
	return start
}

func (w *projectWorld) instruct(version int64, content string) {
	w.Helper()
	_, err := w.DB.Projects.PutInstructions(w.Context(), w.Account, &projects.Change{ProjectID: w.project, Version: &version}, content)
	w.Must(err)
}

// shareHash is the hash of the token of the share that readsOf opens.
var shareHash = make([]byte, 32)

// readsOf returns every read of a conversation and its parts, and the writes that need it.
func (w *projectWorld) readsOf(turn *storetest.Turn) map[string]func() error {
	id, account, db := turn.Spec.ConversationID, w.Account, w.DB
	message := turn.Spec.AssistantMessageID
	key := storetest.KeyOf("key", "body")
	return map[string]func() error{
		"conversation": func() error { _, err := db.Conversations.Conversation(w.Context(), account, id); return err },
		"page":         func() error { _, err := db.Conversations.ConversationPage(w.Context(), account, id); return err },
		"ownership":    func() error { return db.Conversations.OwnsConversation(w.Context(), account, id) },
		"put": func() error {
			_, _, err := db.Conversations.PutConversation(w.Context(), account, id, &conversations.ConversationWrite{}, nil)
			return err
		},
		"title":   func() error { _, err := db.Conversations.SetTitle(w.Context(), account, id, "x", nil); return err },
		"archive": func() error { _, err := db.Conversations.SetArchived(w.Context(), account, id, false, nil); return err },
		"pin":     func() error { _, err := db.Conversations.SetPinned(w.Context(), account, id, false, nil); return err },
		"move": func() error {
			_, err := db.Conversations.MoveConversation(w.Context(), account, &conversations.Move{ConversationID: id, ProjectID: &w.project})
			return err
		},
		"targets": func() error {
			_, _, err := db.Conversations.ListMoveTargets(w.Context(), account, id, nil, 1)
			return err
		},
		"read":  func() error { _, err := db.Conversations.MarkRead(w.Context(), account, id, message); return err },
		"draft": func() error { _, err := db.Drafts.PutDraft(w.Context(), account, id, "x", nil, nil); return err },
		"messages": func() error {
			_, err := db.Conversations.Messages(w.Context(), account, &conversations.MessageQuery{ConversationID: id, Limit: 1})
			return err
		},
		"around": func() error {
			_, err := db.Conversations.Messages(w.Context(), account, &conversations.MessageQuery{ConversationID: id, Around: &message, Limit: 1})
			return err
		},
		"message": func() error { _, err := db.Conversations.GetMessage(w.Context(), account, message); return err },
		"branches": func() error {
			_, _, err := db.Conversations.ListBranches(w.Context(), account, id, protocol.BranchID{}, 1)
			return err
		},
		"branch": func() error {
			_, err := db.Conversations.SetActiveBranch(w.Context(), account, id, turn.Spec.BranchID, nil)
			return err
		},
		"fork": func() error {
			_, err := db.Conversations.ForkConversation(w.Context(), account, id, message, "", nil)
			return err
		},
		"shares": func() error {
			_, _, err := db.Shares.ListOfConversation(w.Context(), account, id, nil, 1)
			return err
		},
		"preview of a share": func() error {
			_, _, err := db.Shares.Preview(w.Context(), account, id, nil, nil, 1)
			return err
		},
		"page of a share": func() error { _, err := db.Shares.Open(w.Context(), shareHash, 1); return err },
		"follow-ups": func() error {
			_, err := db.FollowUps.ListFollowUps(w.Context(), account, id, true, nil, 1)
			return err
		},
		"usage": func() error { _, _, err := db.Usage.ListUsage(w.Context(), account, id, nil, 1); return err },
		"use":   func() error { _, err := db.Usage.RecordUsage(w.Context(), account, id, "k", 1, "u", nil); return err },
		"turn":  func() error { _, err := w.Turns.GetTurn(w.Context(), account, turn.Spec.TurnID); return err },
		"head":  func() error { _, err := w.Turns.TurnHead(w.Context(), account, turn.Spec.TurnID); return err },
		"frames": func() error {
			_, _, err := w.Turns.TurnFrames(w.Context(), account, turn.Spec.TurnID, 0, 1<<20)
			return err
		},
		"start again": func() error {
			start := w.Request(&id, "hello")
			start.Idempotency = &key
			_, err := w.Try(start)
			return err
		},
	}
}

func TestADeletedProjectHidesItsConversationsFromEveryRead(t *testing.T) {
	w := newProjectWorld(t)
	first := w.Start(w.request(nil, "hello"))
	first.End(nil)
	key := storetest.KeyOf("key", "body")
	again := w.request(&first.Spec.ConversationID, "hello")
	again.Idempotency = &key
	turn := w.Start(again)
	turn.End(nil)
	outside := w.Start(w.Request(nil, "outside"))
	outside.End(nil)
	_, err := w.DB.Shares.Create(t.Context(), w.Account, &shares.NewShare{
		ShareID: protocol.NewShareID(), ConversationID: turn.Spec.ConversationID, Days: 1, TokenHash: shareHash, SessionID: protocol.NewSessionID(),
	})
	w.Must(err)
	before, err := w.DB.Conversations.ConversationPage(t.Context(), w.Account, turn.Spec.ConversationID)
	w.Must(err)
	if live := w.delete(); len(live) > 0 {
		t.Fatalf("live turns: %v", live)
	}
	for name, read := range w.readsOf(turn) {
		if err := read(); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s of a hidden conversation: %v", name, err)
		}
	}
	_, err = w.Try(w.request(nil, "new"))
	storetest.WantCode(t, err, protocol.CodeNotFound)
	list, _, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &conversations.ConversationFilter{}, nil, 10)
	if err != nil || len(list) != 1 || list[0].ConversationID != outside.Spec.ConversationID {
		t.Errorf("the list has %d conversations, %v", len(list), err)
	}
	if set, err := w.DB.Conversations.SetAutoTitle(t.Context(), w.Account, turn.Spec.ConversationID, "x"); err != nil || set {
		t.Errorf("a hidden conversation got a title (%v, %v)", set, err)
	}
	w.restore()
	after, err := w.DB.Conversations.ConversationPage(t.Context(), w.Account, turn.Spec.ConversationID)
	w.Must(err)
	if a, b := encoded(t, before), encoded(t, after); a != b {
		t.Errorf("before the deletion\n%s\nafter the restoration\n%s", a, b)
	}
	for name, read := range w.readsOf(turn) {
		// A refusal that asks for the current version shows the conversation, too: an earlier call may have changed it.
		if err := read(); err != nil && protocol.CodeOf(err) != protocol.CodeVersionRequired {
			t.Errorf("%s after the restoration: %v", name, err)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestADeletionOfAProjectWaitsForTheCancelsOfItsLiveTurns(t *testing.T) {
	w := newProjectWorld(t)
	turn := w.Start(w.request(nil, "hello"))
	w.Start(w.Request(nil, "outside"))
	queued := w.Queued(turn.Spec.ConversationID, "later")
	if live := w.delete(); !slices.Equal(live, []protocol.TurnID{turn.Spec.TurnID}) {
		t.Fatalf("live turns: %v", live)
	}
	_, err := w.DB.Conversations.Conversation(t.Context(), w.Account, turn.Spec.ConversationID)
	w.Must(err)
	turn.Cancel()
	if live := w.delete(); len(live) > 0 {
		t.Fatalf("live turns after the cancel: %v", live)
	}
	turn.End(func(f *turnlog.Finish) {
		f.State, f.Status, f.PauseQueue = protocol.TurnCancelled, protocol.MessageCancelled, true
	})
	w.restore()
	page, err := w.DB.Conversations.ConversationPage(t.Context(), w.Account, turn.Spec.ConversationID)
	w.Must(err)
	if len(page.FollowUps) != 1 || page.FollowUps[0].FollowUpID != queued.FollowUpID || page.FollowUps[0].State != protocol.FollowUpHeld || page.LiveTurn != nil {
		t.Errorf("after the restoration: %+v", page)
	}
}

func TestAnArchivedProjectTakesNoTurns(t *testing.T) {
	w := newProjectWorld(t)
	turn := w.Start(w.request(nil, "hello"))
	id := turn.Spec.ConversationID
	item := w.Queued(id, "later")
	version := w.Count(`select queue_version from conversations`)
	w.archive(true)
	queue, err := w.DB.FollowUps.ListFollowUps(t.Context(), w.Account, id, true, nil, 10)
	w.Must(err)
	held := &queue.Items[0]
	if held.FollowUpID != item.FollowUpID || held.State != protocol.FollowUpHeld || held.Version != item.Version+1 || int(queue.QueueVersion) != version+1 {
		t.Errorf("the archive left %+v", queue)
	}
	busy := w.request(&id, "more")
	busy.IfBusy = protocol.BusyQueue
	for name, start := range map[string]*turnlog.Start{"live": busy, "new": w.request(nil, "new")} {
		_, err := w.Try(start)
		if protocol.CodeOf(err) != protocol.CodeConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if next := turn.End(nil); next != nil {
		t.Error("the queue of an archived project started a turn")
	}
	_, err = w.Try(w.request(&id, "more"))
	storetest.WantCode(t, err, protocol.CodeConflict)
	for name, release := range map[string]func() error{
		"released": func() error {
			_, _, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(id, held, protocol.FollowUpQueued), w.Runner)
			return err
		},
		"promoted": func() error {
			_, _, _, err := w.DB.FollowUps.PromoteFollowUp(t.Context(), &turnlog.FollowUpPromotion{Queue: w.QueueOf(id), FollowUpID: item.FollowUpID}, w.Runner)
			return err
		},
		"created": func() error {
			_, _, err := w.DB.FollowUps.CreateFollowUp(t.Context(), &turnlog.NewFollowUp{Queue: w.QueueOf(id), Content: "x"}, w.Runner)
			return err
		},
	} {
		var conflict *protocol.Error
		if err := release(); !errors.As(err, &conflict) || conflict.Code != protocol.CodeConflict {
			t.Errorf("%s: %v", name, err)
		} else if project, is := conflict.Current.(*protocol.Project); !is || project.State != protocol.ProjectArchived {
			t.Errorf("%s: the conflict has %+v", name, conflict.Current)
		}
	}
	_, err = w.DB.Conversations.ForkConversation(t.Context(), w.Account, id, turn.Spec.AssistantMessageID, "", nil)
	storetest.WantCode(t, err, protocol.CodeConflict)
	w.Database.Admin(t, `update follow_ups set created_at = now() - interval '1 hour'`)
	if started, err := w.DB.FollowUps.StartStalledQueues(t.Context(), w.Runner, 10); err != nil || len(started) != 0 {
		t.Errorf("the sweep started %d turns, %v", len(started), err)
	}
	w.archive(false)
	if started, err := w.DB.FollowUps.StartStalledQueues(t.Context(), w.Runner, 10); err != nil || len(started) != 0 {
		t.Errorf("after the archive: %d turns, %v; what it held stays held", len(started), err)
	}
	if _, started, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(id, held, protocol.FollowUpQueued), w.Runner); err != nil || started == nil {
		t.Errorf("released after the archive: %+v, %v", started, err)
	}
}

func TestAQueueInADeletedProjectContinuesAfterItsRestoration(t *testing.T) {
	w := newProjectWorld(t)
	turn := w.Start(w.request(nil, "hello"))
	w.Queued(turn.Spec.ConversationID, "later")
	runner := w.Runner
	w.Runner = turnlog.Runner{} // the node that ended the turn could not start the next one
	turn.End(nil)
	w.Runner = runner
	w.Database.Admin(t, `update follow_ups set created_at = now() - interval '1 hour'`)
	w.delete()
	if started, err := w.DB.FollowUps.StartStalledQueues(t.Context(), w.Runner, 10); err != nil || len(started) != 0 {
		t.Errorf("the sweep started %d turns of a hidden conversation, %v", len(started), err)
	}
	w.restore()
	started, err := w.DB.FollowUps.StartStalledQueues(t.Context(), w.Runner, 10)
	if err != nil || len(started) != 1 || started[0].Spec.ProjectID == nil || *started[0].Spec.ProjectID != w.project {
		t.Errorf("after the restoration: %+v, %v", started, err)
	}
}

func TestATurnHasTheProfileAndTheInstructionsOfItsProject(t *testing.T) {
	w := newProjectWorld(t)
	w.instruct(0, "Be brief.")
	coding, none := protocol.ProfileCoding, int64(0)
	settings := protocol.DefaultProjectSettings()
	settings.DefaultProfile, settings.Tools = &coding, protocol.ToolChoice{Off: []string{"calculate"}}
	_, err := w.DB.Projects.PutSettings(t.Context(), w.Account, &projects.Change{ProjectID: w.project, Version: &none}, settings)
	w.Must(err)
	turn := w.Start(w.request(nil, "hello"))
	spec := turn.Spec
	if spec.Requested != coding || spec.ProjectID == nil || *spec.ProjectID != w.project || spec.InstructionsVersion != 1 || !slices.Equal(spec.DisabledTools, []string{"calculate"}) {
		t.Errorf("the specification is %+v", spec)
	}
	w.instruct(1, "Be long.")
	stored, err := w.Turns.LoadTurn(t.Context(), w.Account, spec.TurnID)
	w.Must(err)
	text, err := w.Turns.Instructions(t.Context(), stored.Spec)
	if err != nil || text.Project != "Be brief." || text.Account != "" {
		t.Errorf("an adopted turn has the instructions %+v, %v", text, err)
	}
	foreign := *stored.Spec
	foreign.AccountID = w.OtherAccount()
	_, err = w.Turns.Instructions(t.Context(), &foreign)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	w.Queued(spec.ConversationID, "later")
	next := turn.End(nil)
	if next == nil || next.Spec.InstructionsVersion != 2 || next.Spec.Requested != coding {
		t.Errorf("the next turn is %+v", next)
	}
	named := w.request(nil, "named")
	named.Profile = protocol.ProfileBalanced
	if spec := w.Start(named).Spec; spec.Requested != protocol.ProfileBalanced {
		t.Errorf("the profile of the request is replaced by %s", spec.Requested)
	}
	outside := w.Start(w.Request(nil, "outside")).Spec
	if outside.ProjectID != nil || outside.InstructionsVersion != 0 || outside.Requested != protocol.ProfileAuto {
		t.Errorf("a turn outside has %+v", outside)
	}
	work, _, err := w.DB.Projects.ListWork(t.Context(), w.Account, w.project, nil, 3)
	w.Must(err)
	if len(work) != 3 || work[0].Kind != protocol.WorkTurnStarted || work[1].Kind != protocol.WorkConversationCreated || work[2].TurnID == nil ||
		*work[2].TurnID != next.Spec.TurnID || work[2].By != "service" {
		t.Errorf("the work history is %+v", work)
	}
}

func TestStartsAndADeletionOfTheirProjectExcludeEachOther(t *testing.T) {
	w := newProjectWorld(t)
	turn := w.Start(w.request(nil, "hello"))
	turn.End(nil)
	change := w.change()
	var live []protocol.TurnID
	failures := storetest.Together(3, func(i int) (err error) {
		switch i {
		case 0:
			_, live, err = w.DB.Projects.DeleteProject(t.Context(), w.Account, &projects.Deletion{Change: *change})
		case 1:
			_, err = w.Try(w.request(&turn.Spec.ConversationID, "again"))
		default:
			_, err = w.Try(w.request(nil, "new"))
		}
		return err
	})
	if failures[0] != nil {
		t.Fatal(failures[0])
	}
	deleted := len(live) == 0
	for _, err := range failures[1:] {
		switch {
		case err == nil && deleted:
			t.Error("a turn started in a project that was deleted without a cancel of it")
		case err != nil && protocol.CodeOf(err) != protocol.CodeNotFound:
			t.Error(err)
		}
	}
}

// TestNoCostGrowsWithAProject measures an account with a project of 10,000 conversations, before and after its deletion.
func TestNoCostGrowsWithAProject(t *testing.T) {
	metered(t, noCostGrowsWithAProject)
}

func noCostGrowsWithAProject(t *testing.T, metered meteredWorld) {
	w := &projectWorld{World: metered.World}
	made, err := w.DB.Projects.CreateProject(t.Context(), w.Account, "A", nil)
	w.Must(err)
	w.project = made.ProjectID
	turn := w.Start(w.request(nil, "hello"))
	turn.End(nil)
	outside := w.Start(w.Request(nil, "outside"))
	outside.End(nil)
	for _, sql := range []string{
		`insert into conversations (account_id, conversation_id, active_branch_id, project_id, last_activity_at)
		select '` + uuidOf(w.Account) + `', md5(n::text)::uuid, md5(n::text)::uuid, '` + uuidOf(w.project) + `', now() + n * interval '1 second'
		from generate_series(1, 10000) n`,
		`insert into branches (account_id, branch_id, conversation_id)
		select account_id, active_branch_id, conversation_id from conversations c
		where not exists (select from branches b where b.account_id = c.account_id and b.branch_id = c.active_branch_id)`,
		`update projects set conversation_count = conversation_count + 10000 where project_id = '` + uuidOf(w.project) + `'`,
		`insert into projects (account_id, project_id, name, deleted_at, purge_at)
		select account_id, md5(n::text)::uuid, 'x', now(), now() from accounts, generate_series(1, 10000) n where account_id = '` + uuidOf(w.Account) + `'`,
	} {
		w.Database.Fill(t, sql)
	}
	metered.analyze()
	list := func(filter conversations.ConversationFilter, want int) func() {
		return func() {
			page, _, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &filter, nil, 20)
			if err != nil || len(page) != want {
				t.Errorf("%+v: %d conversations, %v", filter, len(page), err)
			}
		}
	}
	measure := func(when string, inside int, all int, starts *storetest.Turn) {
		wantPages(w.World, when+", the list of the account", 500, list(conversations.ConversationFilter{Archived: new(bool)}, all))
		wantPages(w.World, when+", the list of the project", 500, list(conversations.ConversationFilter{ProjectID: &w.project}, inside))
		wantPages(w.World, when+", projects", 200, func() {
			page, _, err := w.DB.Projects.ListProjects(t.Context(), w.Account, protocol.ProjectDeleted, nil, 20)
			if err != nil || len(page) != 20 {
				t.Errorf("%d projects, %v", len(page), err)
			}
		})
		wantPages(w.World, when+", the page of a conversation", 200, func() {
			_, err := w.DB.Conversations.ConversationPage(t.Context(), w.Account, starts.Spec.ConversationID)
			w.Must(err)
		})
		wantPages(w.World, when+", a turn", 900, func() {
			w.Start(w.request(&starts.Spec.ConversationID, "again")).End(nil)
		})
	}
	measure("before the deletion", 20, 20, turn)
	wantPages(w.World, "moving a conversation out and in", 700, func() {
		for _, to := range []*protocol.ProjectID{nil, &w.project} {
			c, err := w.DB.Conversations.Conversation(t.Context(), w.Account, turn.Spec.ConversationID)
			w.Must(err)
			_, err = w.DB.Conversations.MoveConversation(t.Context(), w.Account, &conversations.Move{ConversationID: c.ConversationID, ProjectID: to, Version: &c.Version})
			w.Must(err)
		}
	})
	began := time.Now()
	wantPages(w.World, "deleting and restoring", 40_000, func() {
		w.delete()
		w.restore()
	})
	t.Logf("deleting and restoring took %v", time.Since(began))
	w.delete()
	for done := false; !done; {
		done, err = w.DB.Projects.Reindex(t.Context(), w.Account, w.project, 2000)
		w.Must(err)
	}
	metered.analyze()
	measure("after the deletion", 0, 1, outside)
	wantPages(w.World, "move targets", 200, func() {
		targets, _, err := w.DB.Conversations.ListMoveTargets(t.Context(), w.Account, outside.Spec.ConversationID, nil, 20)
		if err != nil || len(targets) != 0 {
			t.Errorf("%d targets, %v", len(targets), err)
		}
	})
	wantPages(w.World, "the work history", 100, func() {
		_, _, err := w.DB.Projects.ListWork(t.Context(), w.Account, w.project, nil, 20)
		w.Must(err)
	})
}

func uuidOf[T ~[16]byte](id T) string { return protocol.NodeID(id).String() }

// TestAnArchiveHoldsWhatIsBeingQueued archives a project while a request that has seen it active has not committed yet.
func TestAnArchiveHoldsWhatIsBeingQueued(t *testing.T) {
	w := newProjectWorld(t)
	item := w.Queued(w.Start(w.request(nil, "hello")).Spec.ConversationID, "later")
	w.Database.Admin(t, `update follow_ups set state = 'held'`) // before the request
	archived := make(chan error, 1)
	w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error {
		for sql, argument := range map[string]any{
			accounts.LockAccountSQL: w.Account, `update follow_ups set state = 'queued' where follow_up_id = $1`: item.FollowUpID,
		} {
			if _, err := tx.Exec(ctx, sql, argument); err != nil {
				return err
			}
		}
		go func() {
			_, err := w.DB.Projects.SetArchived(w.Context(), w.Account, w.change(), true)
			archived <- err
		}()
		storetest.Eventually(t, func() bool {
			return len(archived) > 0 || w.Count(`select count(*) from pg_locks where not granted`) > 0
		})
		return nil
	}))
	w.Must(<-archived)
	if n := w.Count(`select count(*) from follow_ups where state = 'held'`); n != 1 {
		t.Error("the item is not held")
	}
}

// A node of an earlier version archives a project and leaves its queues as they are.
func TestWhatWasLeftQueuedInAnArchivedProjectIsHeldInTheActiveOne(t *testing.T) {
	w := newProjectWorld(t)
	turn := w.Start(w.request(nil, "x"))
	item := w.Queued(turn.Spec.ConversationID, "next")
	w.Database.Admin(t, `update projects set archived_at = now(), version = version + 1`)
	turn.End(nil)
	if n := w.Count(`select count(*) from follow_ups where state = 'queued'`); n != 1 {
		t.Fatalf("%d items are queued", n)
	}
	w.archive(false)
	if n := w.Count(`select count(*) from follow_ups where state = 'held' and version = 2`); n != 1 {
		t.Error("the item is not held")
	}
	if _, started, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(turn.Spec.ConversationID, item, protocol.FollowUpQueued), w.Runner); protocol.CodeOf(err) != protocol.CodeStaleVersion {
		t.Errorf("started %v, %v", started, err)
	}
}
