package turns_test

import (
	"testing"

	"turnstone/persistence/approvals"
	"turnstone/persistence/conversations"
	"turnstone/persistence/storetest"
)

// busyAccountSQL gives an account conversations, each with a branch and a turn.
const busyAccountSQL = `
with ids as materialized (select md5('busy' || n)::uuid as id from generate_series(1, $2::int) n),
conversations as (insert into conversations (account_id, conversation_id, active_branch_id) select $1, id, id from ids),
branches as (insert into branches (account_id, branch_id, conversation_id) select $1, id, id from ids)
insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, next_sequence)
select $1, id, id, id, id, id, '{}', 'completed', false, 2 from ids`

const busyConversations = 500

func TestListsOfTheAccountReadOnlyAPage(t *testing.T) { metered(t, listsOfTheAccountReadOnlyAPage) }

func listsOfTheAccountReadOnlyAPage(t *testing.T, w meteredWorld) {
	w.Database.Fill(t, busyAccountSQL, w.Account, busyConversations)
	w.Database.Fill(t, `insert into research_tasks (account_id, task_id, conversation_id, question, state, spec, body, version, next_sequence, next_entry, created_at)
		select $1, gen_random_uuid(), md5('busy' || 1 + n % $3::int)::uuid, '', 'completed', '{}', '{}', 1, 1, 1, now() from generate_series(1, $2::int) n`,
		w.Account, historyRows, busyConversations)
	w.Database.Fill(t, `insert into approvals (account_id, approval_id, turn_id, conversation_id, body, tool_name, resource, definition, created_at, expires_at)
		select $1, gen_random_uuid(), md5('busy' || 1 + n % $3::int)::uuid, md5('busy' || 1 + n % $3::int)::uuid, '{}', '', '', '', now(), now() + interval '1 day'
		from generate_series(1, $2::int) n`, w.Account, historyRows, busyConversations)
	w.analyze()
	const page, most = 20, 200
	wantPages(w.World, "a page of the research tasks", most, func() {
		found, next, err := w.DB.Research.ListAll(t.Context(), w.Account, false, nil, page)
		w.Must(err)
		if len(found) != page || next == nil {
			t.Errorf("the page has %d tasks", len(found))
		}
	})
	for _, filter := range []string{approvals.Pending, approvals.Any} {
		wantPages(w.World, "a page of the approvals, "+filter, most, func() {
			found, next, err := w.DB.Approvals.List(t.Context(), w.Account, filter, nil, page)
			w.Must(err)
			if len(found) != page || next == nil {
				t.Errorf("the page has %d approvals", len(found))
			}
		})
	}
}

func TestFindingAFrequentTextReadsFewMessages(t *testing.T) {
	metered(t, findingAFrequentTextReadsFewMessages)
}

func findingAFrequentTextReadsFewMessages(t *testing.T, w meteredWorld) {
	id := storetest.NewConversation(t, w.DB, w.Account, "Long").ConversationID
	w.Database.Fill(t, `
		with head as (
			update branches set head_depth = $3::int where account_id = $1 and conversation_id = $2 returning branch_id)
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts)
		select $1, gen_random_uuid(), $2, branch_id, n, 'user', 'complete', '[{"type":"text","text":"The tide."}]' from head, generate_series(1, $3::int) n`,
		w.Account, id, historyRows)
	w.analyze()
	wantPages(w.World, "a page of the messages with a frequent text", 150, func() {
		page, err := w.DB.Conversations.FindText(t.Context(), w.Account, &conversations.FindQuery{ConversationID: id, Text: "tide", Limit: 10})
		w.Must(err)
		if len(page.Messages) != 10 || page.Next != 10 {
			t.Errorf("found %d messages up to %d", len(page.Messages), page.Next)
		}
	})
}
