package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/verify"
)

// storedTask is a research task as it is in the database.
type storedTask struct {
	protocol.ResearchTask // without what its specification contains
	Conversation          string
	Question              string
	Next                  int64
	Chunks                []verify.Chunk
	Steps                 []string // whose results are stored
	Adopted               bool
	// Of its conversation, which only has tasks.
	Messages, Artifacts, Usages int
}

const (
	tasksSQL = `
select r.task_id, r.conversation_id, r.next_sequence, r.body::text, r.spec ->> 'Question',
       (select count(*) from messages m where m.account_id = r.account_id and m.conversation_id = r.conversation_id),
       (select count(*) from artifacts a where a.account_id = r.account_id and a.conversation_id = r.conversation_id),
       (select count(*) from usage_records u where u.account_id = r.account_id and u.conversation_id = r.conversation_id and u.kind = 'research')
from research_tasks r join conversations c on c.account_id = r.account_id and c.conversation_id = r.conversation_id
where c.created_at >= $1 and r.account_id = any($2)`
	taskEventsSQL = `
select task_id, first_sequence, last_sequence, frames from research_events
where account_id = any($1) and task_id = any($2) order by account_id, task_id, first_sequence`
	taskEntriesSQL = `select task_id, body from research_entries where account_id = any($1) and task_id = any($2) order by account_id, task_id, number`
)

func (s *snapshot) readTasks(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, since any) error {
	rows, err := tx.Query(ctx, tasksSQL, since, accounts)
	if err != nil {
		return err
	}
	var ids []protocol.TaskID
	var id protocol.TaskID
	var conversation protocol.ConversationID
	var body string
	one := storedTask{}
	_, err = pgx.ForEachRow(rows, []any{&id, &conversation, &one.Next, &body, &one.Question, &one.Messages, &one.Artifacts, &one.Usages}, func() error {
		stored := one
		stored.Conversation = conversation.String()
		ids, s.Tasks[id.String()] = append(ids, id), &stored
		return json.Unmarshal([]byte(body), &stored.ResearchTask)
	})
	if err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, taskEventsSQL, accounts, ids); err != nil {
		return err
	}
	chunk := verify.Chunk{Epoch: 1} // the rows have none
	_, err = pgx.ForEachRow(rows, []any{&id, &chunk.First, &chunk.Last, &chunk.Frames}, func() error {
		s.Tasks[id.String()].Chunks = append(s.Tasks[id.String()].Chunks, chunk)
		chunk.Frames = nil
		return nil
	})
	if err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, taskEntriesSQL, accounts, ids); err != nil {
		return err
	}
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		task, entry := s.Tasks[id.String()], researchlog.Entry{}
		if err := json.Unmarshal(text, &entry); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		task.Adopted = task.Adopted || entry.Kind == researchlog.EntryAdopt
		if entry.Kind == researchlog.EntryResult {
			task.Steps = append(task.Steps, entry.Step)
		}
		return nil
	})
	return err
}

// checkTasks checks the research tasks against I1 to I4, I6, I12 and I18, and returns their events.
func (c *checker) checkTasks() map[string][]verify.Event {
	cancelled := map[string]bool{}
	for _, o := range c.Operations {
		if o.Kind == opStop && o.acknowledged() {
			cancelled[o.Turn] = true
		}
	}
	logs, byText, left := map[string][]verify.Event{}, map[string][]string{}, map[string]*kept{}
	for _, id := range slices.Sorted(maps.Keys(c.Stored.Tasks)) {
		task := c.Stored.Tasks[id]
		logs[id] = c.checkTask(id, task, cancelled[id])
		token := turnToken.FindString(task.Question)
		byText[token] = append(byText[token], id)
		if left[task.Conversation] == nil {
			left[task.Conversation] = &kept{}
		}
		left[task.Conversation].count(task)
	}
	c.checkWrites(opTask, byText)
	for id := range cancelled {
		if c.Stored.Tasks[id] == nil {
			c.fail(lost, "the task %s was cancelled and is not stored", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		left[id].check(c, id)
	}
	return logs
}

// kept is what the tasks of one conversation must have left, and what is stored.
type kept struct{ completed, used, messages, artifacts, usages int }

func (k *kept) count(task *storedTask) {
	if task.State == protocol.ResearchCompleted {
		k.completed++
	}
	if task.State.Terminal() && task.Spent.Tokens > 0 {
		k.used++
	}
	k.messages, k.artifacts, k.usages = task.Messages, task.Artifacts, task.Usages
}

func (k *kept) check(c *checker, conversation string) {
	if k.messages != k.completed || k.artifacts != k.completed || k.usages != k.used {
		c.fail(doubledEffects, "%s: %d tasks were completed, and %d of all used tokens; it has %d messages, %d artifacts and %d usage records",
			conversation, k.completed, k.used, k.messages, k.artifacts, k.usages)
	}
}

// checkTask checks the rows of one task, and returns its events.
func (c *checker) checkTask(id string, task *storedTask, cancelled bool) []verify.Event {
	events, found := verify.ReadChunks(id, task.Chunks)
	read := verify.ReadResearch(id, events)
	c.report(id, append(found, read.Findings...))
	if read.End == nil {
		c.fail(notAtRest, "%s is %s, and its log has no end", id, task.State)
		return events
	}
	if int64(len(events)) != task.Next-1 {
		c.fail(gaps, "%s: the log has %d events, but the task's row says %d", id, len(events), task.Next-1)
	}
	c.report(id, read.CheckResource(&task.ResearchTask, cancelled))
	steps := map[string]bool{}
	for _, step := range task.Steps {
		if steps[step] {
			c.fail(doubledEffects, "%s: the step %s has two results", id, step)
		}
		steps[step] = true
	}
	return events
}

// plantedTasks returns a round in which one research task was completed and another one cancelled.
func plantedTasks(t *testing.T) (all *record, completed, stopped *storedTask) {
	t.Helper()
	p := newPlanted()
	artifact, message := protocol.NewArtifactID(), protocol.NewMessageID()
	task := func(token, conversation string, state protocol.ResearchState, payloads ...protocol.Payload) *storedTask {
		id, begins := protocol.NewTaskID(), &protocol.ResearchStarted{ConversationID: protocol.NewConversationID()}
		payloads = append([]protocol.Payload{begins, &protocol.ResearchStateChanged{State: protocol.ResearchRunning}}, payloads...)
		frames, err := protocol.AppendResearchEvents(nil, id, 1, time.Unix(0, 0), payloads)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(len(payloads))
		stored := &storedTask{Conversation: conversation, Question: token, Next: n + 1, Chunks: []verify.Chunk{{First: 1, Last: n, Epoch: 1, Frames: frames}}, Steps: []string{"plan"}}
		stored.TaskID, stored.State, stored.LastSequence = id, state, n
		p.Stored.Tasks[id.String()] = stored
		p.Operations = append(p.Operations, operation{Kind: opTask, Text: token, Status: 202, ID: id.String()})
		return stored
	}
	p.Stored.Tasks = map[string]*storedTask{}
	completed = task("T000000000021", "conv_1", protocol.ResearchCompleted, &protocol.ResearchStateChanged{State: protocol.ResearchCompleted},
		&protocol.ResearchFinished{State: protocol.ResearchCompleted, ArtifactID: &artifact, MessageID: &message, LastSequence: 4})
	completed.ArtifactID, completed.Spent.Tokens, completed.Messages, completed.Artifacts, completed.Usages = &artifact, 1, 1, 1, 1
	stopped = task("T000000000022", "conv_2", protocol.ResearchCancelled, &protocol.ResearchStateChanged{State: protocol.ResearchCancelling},
		&protocol.ResearchStateChanged{State: protocol.ResearchCancelled}, &protocol.ResearchFinished{State: protocol.ResearchCancelled, LastSequence: 5})
	p.Operations = append(p.Operations, operation{Kind: opStop, Turn: stopped.TaskID.String(), Status: 202})
	return &p.record, completed, stopped
}

func TestCheckerFindsPlantedViolationsOfResearchTasks(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		plant func(all *record, completed, stopped *storedTask)
	}{
		"nothing":       {"", func(*record, *storedTask, *storedTask) {}},
		"a lost task":   {lost, func(all *record, completed, _ *storedTask) { delete(all.Stored.Tasks, completed.TaskID.String()) }},
		"a task of two": {doubledEffects, func(_ *record, completed, stopped *storedTask) { stopped.Question = completed.Question }},
		"a cancel forgotten": {lost, func(all *record, completed, _ *storedTask) {
			all.Operations[len(all.Operations)-1].Turn = completed.TaskID.String()
		}},
		"a task without end": {notAtRest, func(_ *record, completed, _ *storedTask) { completed.Chunks = nil }},
		"a missing event":    {gaps, func(_ *record, completed, _ *storedTask) { completed.Next++ }},
		"a step twice":       {doubledEffects, func(_ *record, completed, _ *storedTask) { completed.Steps = []string{"plan", "plan"} }},
		"two reports":        {doubledEffects, func(_ *record, completed, _ *storedTask) { completed.Messages = 2 }},
		"two usage records":  {doubledEffects, func(_ *record, completed, _ *storedTask) { completed.Usages = 2 }},
		"seen and not stored": {notDurable, func(all *record, _, _ *storedTask) {
			all.Witness.Saw(protocol.NewTaskID().String(), 1, "{}", time.Now())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			all, completed, stopped := plantedTasks(t)
			c.plant(all, completed, stopped)
			found := newFindings()
			check(all, found)
			if c.kind == "" && !found.clean() || c.kind != "" && found.count(c.kind) == 0 {
				t.Errorf("found %v, want %q", found.violations, c.kind)
			}
		})
	}
}
