package conversations_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"turnstone/persistence/conversations"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestATemporaryConversationIsErasedADayAfterItsLastActivity(t *testing.T) {
	w := storetest.NewWorld(t)
	begin := func(temporary bool) *storetest.Turn {
		start := w.Request(nil, "hello")
		start.Temporary = temporary
		return w.Start(start)
	}
	kept, young, live, old := begin(false), begin(true), begin(true), (*storetest.Turn)(nil)
	kept.End(nil)
	old = begin(true)
	old.End(nil)
	young.End(nil)
	if titles := w.Jobs("title"); titles != 1 {
		t.Errorf("%d title jobs, want only that of the conversation that is not temporary", titles)
	}
	w.Database.Admin(t, `update conversations set last_activity_at = now() - interval '25 hours' where conversation_id <> $1`, young.Spec.ConversationID)
	w.Must(w.DB.Conversations.Expire(t.Context()))
	for name, c := range map[string]struct {
		turn *storetest.Turn
		code protocol.Code
	}{"kept": {kept, ""}, "young": {young, ""}, "live": {live, ""}, "old": {old, protocol.CodeNotFound}} {
		_, err := w.DB.Conversations.Conversation(t.Context(), w.Account, c.turn.Spec.ConversationID)
		if protocol.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if purges := w.Jobs("purge_conversation"); purges != 1 {
		t.Errorf("%d purge jobs", purges)
	}
	w.Must(w.DB.Conversations.Expire(t.Context()))
	if purges := w.Jobs("purge_conversation"); purges != 1 {
		t.Errorf("%d purge jobs after the second expiry", purges)
	}
}

// newFile inserts an attachment that belongs to no conversation.
func newFile(w *storetest.World) protocol.FileID {
	id := protocol.DeriveFileID(protocol.NewUploadID())
	w.Database.Admin(w.T, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at, purpose)
		values ($1, $2, 'a.txt', 'text/plain', 'text', 1, sha256('x'), 'x', 'x', now(), now(), now(), 'attachment')`, w.Account, id)
	return id
}

// newConversation starts a conversation, whose turn is live.
func newConversation(w *storetest.World, temporary bool) *storetest.Turn {
	start := w.Request(nil, "hello")
	start.Temporary = temporary
	return w.Start(start)
}

func newTemporary(w *storetest.World) protocol.ConversationID {
	turn := newConversation(w, true)
	turn.End(nil)
	return turn.Spec.ConversationID
}

func putDraft(w *storetest.World, id protocol.ConversationID, files ...protocol.FileID) error {
	_, err := w.DB.Drafts.PutDraft(w.T.Context(), w.Account, id, "x", files, nil)
	return err
}

func end(w *storetest.World, id protocol.ConversationID) error {
	_, err := w.DB.Conversations.DeleteConversation(w.T.Context(), w.Account, &conversations.Deletion{ConversationID: id})
	return err
}

func addFollowUp(w *storetest.World, id protocol.ConversationID, file protocol.FileID) (*protocol.FollowUp, error) {
	item, _, err := w.DB.FollowUps.CreateFollowUp(w.T.Context(),
		&turnlog.NewFollowUp{Queue: w.QueueOf(id), Content: "x", Attachments: []protocol.FileID{file}}, w.Runner)
	return item, err
}

// oneAfterTheOther runs calls at the same time. Each has started, and waits for the table or for a call before it, before the
// next one starts; then the table is free.
func oneAfterTheOther(w *storetest.World, table string, calls ...func() error) []error {
	gate, err := w.AdminConn().Begin(w.T.Context())
	w.Must(err)
	_, err = gate.Exec(w.T.Context(), `lock table `+table+` in access exclusive mode`)
	w.Must(err)
	observer, errs, ended := w.AdminConn(), make([]error, len(calls)), make(chan struct{})
	for i, call := range calls {
		go func() {
			errs[i] = call()
			ended <- struct{}{}
		}()
		storetest.Eventually(w.T, func() bool {
			var waiting int
			w.Must(observer.QueryRow(w.T.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting))
			return waiting > i
		})
	}
	w.Must(gate.Rollback(w.T.Context()))
	for range calls {
		<-ended
	}
	return errs
}

func isDeleted(w *storetest.World, file protocol.FileID) bool {
	return w.Count(`select count(*) from files where deleted_at is not null and file_id = '`+uuid.UUID(file).String()+`'`) == 1
}

// Each of two ends takes the other conversation for one that still has the file, unless one waits for the other.
func TestAFileOfTwoTemporaryConversationsThatEndTogetherEndsWithThem(t *testing.T) {
	w := storetest.NewWorld(t)
	file, made := newFile(w), [2]protocol.ConversationID{newTemporary(w), newTemporary(w)}
	w.Database.Admin(t, `update conversations set draft_attachments = array[$1::uuid]`, file)
	for _, err := range oneAfterTheOther(w, "river.river_job",
		func() error { return end(w, made[0]) }, func() error { return end(w, made[1]) }) {
		w.Must(err)
	}
	if !isDeleted(w, file) {
		t.Error("the file stays")
	}
}

// The end of a temporary conversation starts to look for uses of its files before the other one is committed.
func TestAFileThatIsUsedElsewhereWhileItsTemporaryConversationEndsStays(t *testing.T) {
	for name, use := range map[string]func(*storetest.World, protocol.FileID) func() error{
		"draft": func(w *storetest.World, file protocol.FileID) func() error {
			id := newConversation(w, false).Spec.ConversationID
			return func() error { return putDraft(w, id, file) }
		},
		"queue": func(w *storetest.World, file protocol.FileID) func() error {
			id := newConversation(w, false).Spec.ConversationID
			return func() error { _, err := addFollowUp(w, id, file); return err }
		},
		"message": func(w *storetest.World, file protocol.FileID) func() error {
			start := w.Request(nil, "hello")
			start.Attachments = []protocol.FileID{file}
			return func() error { _, err := w.Try(start); return err }
		},
		"project": func(w *storetest.World, file protocol.FileID) func() error {
			project, err := w.DB.Projects.CreateProject(w.T.Context(), w.Account, "Tides", nil)
			w.Must(err)
			return func() error {
				_, err := w.DB.Files.AddToProject(w.T.Context(), w.Account, project.ProjectID, file, nil)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t)
			file, temporary := newFile(w), newTemporary(w)
			w.Must(putDraft(w, temporary, file))
			call := use(w, file)
			for _, err := range oneAfterTheOther(w, "feed_items", call, func() error { return end(w, temporary) }) {
				w.Must(err)
			}
			if isDeleted(w, file) {
				t.Error("the file was deleted although something else has it")
			}
		})
	}
}

func TestADraftThatIsWrittenWhileItsTemporaryConversationEndsLeavesNoFile(t *testing.T) {
	w := storetest.NewWorld(t)
	file, temporary := newFile(w), newTemporary(w)
	errs := oneAfterTheOther(w, "feed_items", func() error { return putDraft(w, temporary, file) }, func() error { return end(w, temporary) })
	w.Must(errors.Join(errs...))
	if !isDeleted(w, file) {
		t.Error("the file of the draft before the end stays")
	}
	file, temporary = newFile(w), newTemporary(w)
	w.Must(putDraft(w, temporary, file))
	errs = oneAfterTheOther(w, "feed_items", func() error { return end(w, temporary) }, func() error { return putDraft(w, temporary, file) })
	w.Must(errs[0])
	storetest.WantCode(t, errs[1], protocol.CodeNotFound)
	if !isDeleted(w, file) {
		t.Error("the file of the draft after the end stays")
	}
}

func TestAFileThatATemporaryConversationNoLongerNamesEndsWithIt(t *testing.T) {
	w := storetest.NewWorld(t)
	drafted, queued, edited := newFile(w), newFile(w), newFile(w)
	temporary := newConversation(w, true).Spec.ConversationID
	w.Must(putDraft(w, temporary, drafted))
	w.Must(putDraft(w, temporary))
	item, err := addFollowUp(w, temporary, queued)
	w.Must(err)
	change := w.Change(temporary, item, protocol.FollowUpHeld)
	change.Attachments = &[]protocol.FileID{edited}
	item, _, err = w.DB.FollowUps.ChangeFollowUp(t.Context(), change, w.Runner)
	w.Must(err)
	_, _, err = w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(temporary, item, protocol.FollowUpCancelled), w.Runner)
	w.Must(err)
	w.Database.Admin(t, `update conversations set live_turn_id = null`)
	w.Must(end(w, temporary))
	for name, file := range map[string]protocol.FileID{"of an earlier draft": drafted, "of an earlier follow-up": queued, "of a cancelled follow-up": edited} {
		if !isDeleted(w, file) {
			t.Errorf("the file %s stays", name)
		}
	}
}

func TestAFileEndsWithTheLastTemporaryConversationThatHadIt(t *testing.T) {
	w := storetest.NewWorld(t)
	lasting := newConversation(w, false).Spec.ConversationID
	shared, kept, first, second := newFile(w), newFile(w), newTemporary(w), newTemporary(w)
	for _, id := range []protocol.ConversationID{first, second} {
		w.Must(putDraft(w, id, shared, kept))
	}
	w.Must(putDraft(w, lasting, kept))
	w.Must(putDraft(w, second, kept))
	third := newTemporary(w)
	w.Must(putDraft(w, third, shared))
	w.Must(end(w, second))
	if isDeleted(w, shared) {
		t.Error("the file was deleted although the conversation that it belongs to has it")
	}
	w.Must(end(w, first))
	if isDeleted(w, shared) || isDeleted(w, kept) {
		t.Error("a file was deleted although another conversation has it")
	}
	w.Must(putDraft(w, third))
	w.Must(putDraft(w, lasting))
	w.Must(end(w, third))
	if !isDeleted(w, shared) || isDeleted(w, kept) {
		t.Errorf("deleted: %t the file of temporary conversations, %t that of a lasting one", isDeleted(w, shared), isDeleted(w, kept))
	}
}
