package turns_test

import (
	"testing"
	"time"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// The tasks that have ended cost nothing when tasks are listed, started or claimed.
func TestResearchTasksReadNoneThatHaveEnded(t *testing.T) {
	metered(t, researchTasksReadNoneThatHaveEnded)
}

func researchTasksReadNoneThatHaveEnded(t *testing.T, w meteredWorld) {
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Tides").ConversationID
	start := func() *researchlog.Spec {
		spec := &researchlog.Spec{
			AccountID: w.Account, TaskID: protocol.NewTaskID(), ConversationID: conversation, Question: "Why do tides differ?", Depth: protocol.ResearchQuick,
			Sources: []protocol.ResearchSource{protocol.ResearchWeb}, CreatedAt: time.Now().UTC(),
		}
		task := protocol.ResearchTask{TaskID: spec.TaskID, ConversationID: conversation, Question: spec.Question, State: protocol.ResearchQueued, Version: 1, CreatedAt: spec.CreatedAt}
		_, err := w.DB.Research.Create(t.Context(), spec, &researchlog.Append{AccountID: w.Account, TaskID: spec.TaskID, First: 1, Last: 1, Frames: []byte("{}\n"), Task: task})
		w.Must(err)
		return spec
	}
	oldest := start()
	// The reports' identifiers end in their numbers.
	message, artifact := protocol.NewMessageID().String(), protocol.NewArtifactID().String()
	message, artifact = message[:len(message)-6], artifact[:len(artifact)-6]
	w.Database.Fill(t, `
		insert into research_tasks (account_id, task_id, conversation_id, question, state, spec, body, version, next_sequence, next_entry, created_at, finished_at)
		select account_id, overlay(task_id::text placing lpad(to_hex(n), 12, '0') from 25)::uuid, conversation_id, question, 'completed', spec,
			body::jsonb || jsonb_build_object('message_id', $3::text || lpad(n::text, 6, '0'), 'artifact_id', $4::text || lpad(n::text, 6, '0')), 1, 2, 1, created_at, now()
		from research_tasks, generate_series(1, $2::int) n where account_id = $1`, w.Account, historyRows, message, artifact)
	start()
	w.analyze()
	tasks := func(page []*protocol.ResearchTask, next *protocol.TaskID, err error) {
		t.Helper()
		w.Must(err)
		if len(page) == 0 {
			t.Error("the page is empty")
		}
	}
	wantPages(w.World, "a page of the tasks of a conversation", 60, func() { tasks(w.DB.Research.List(t.Context(), w.Account, conversation, "", nil, 20)) })
	wantPages(w.World, "the tasks of two reports", 60, func() {
		for _, report := range []string{message, artifact} {
			tasks(w.DB.Research.List(t.Context(), w.Account, conversation, report+"000007", nil, 20))
		}
	})
	wantPages(w.World, "a page of the tasks of the account", 60+20*3, func() { tasks(w.DB.Research.ListAll(t.Context(), w.Account, false, nil, 20)) }) // and the conversation of each
	wantPages(w.World, "the tasks that have not ended", 30, func() { tasks(w.DB.Research.ListAll(t.Context(), w.Account, true, nil, 20)) })
	wantPages(w.World, "the start of a task", 150, func() { start() })
	wantPages(w.World, "the sources that a conversation keeps", 120, func() {
		_, err := w.DB.Research.Kept(t.Context(), w.Account, conversation, 100)
		w.Must(err)
	})
	claims, err := w.DB.Research.ClaimDue(t.Context(), w.Node, 10, 1)
	w.Must(err)
	if len(claims) != 1 || claims[0].TaskID != oldest.TaskID {
		t.Errorf("claimed %v, want %v", claims, oldest.TaskID)
	}
}
