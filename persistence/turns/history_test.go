package turns_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// continued returns a turn that has ended in a conversation of many messages of several sizes.
func continued(w *storetest.World, messages int) *storetest.Turn {
	w.Helper()
	turn := w.Start(w.Request(nil, "one"))
	turn.End(nil)
	s := turn.Spec
	w.Database.Fill(w.T, `
		with made as (
			insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts)
			select $1, md5('message' || n)::uuid, $2, $3, n, case when n = 3 then $5 else md5('message' || n - 1)::uuid end,
				case when n % 2 = 1 then 'user' else 'assistant' end, 'complete',
				json_build_array(json_build_object('type', 'text', 'text', n || repeat(' words', n % 7 * 10)))
			from generate_series(3, $4::int) n
		), head as (update branches set head_message_id = md5('message' || $4)::uuid, head_depth = $4 where branch_id = $3)
		update conversations set message_count = $4 where conversation_id = $2`,
		w.Account, s.ConversationID, s.BranchID, messages, s.AssistantMessageID)
	turn = w.Start(w.Request(&s.ConversationID, "next"))
	turn.End(nil)
	return turn
}

// read returns the history of a message of a turn, and whether older messages were left out.
func read(w *storetest.World, turn *storetest.Turn, message protocol.MessageID, maxMessages, maxBytes int) (messages []turnlog.HistoryMessage, more bool) {
	w.Helper()
	messages, more, err := w.Turns.History(w.Context(), w.Account, turn.Spec.ConversationID, turn.Spec.BranchID, message, maxMessages, maxBytes)
	w.Must(err)
	return messages, more
}

// A store that has read a history gives every later reader the same as a store that has not, whatever the turns between
// them did.
func TestAKeptHistoryIsTheOneOfTheDatabase(t *testing.T) {
	w := storetest.NewWorld(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	turn := continued(w, 120)
	ended := []*storetest.Turn{turn}
	for range 60 {
		request := w.Request(&turn.Spec.ConversationID, fmt.Sprint("input ", random.IntN(1000)))
		if from := ended[random.IntN(len(ended))]; random.IntN(3) == 0 {
			request.Branch = &protocol.BranchRequest{MessageID: from.Spec.UserMessageID, Mode: protocol.BranchEdit}
		} else if random.IntN(3) == 0 {
			request.Branch = &protocol.BranchRequest{MessageID: from.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
			request.Input = ""
		}
		turn = w.Start(request)
		limits := []int{1000, 1 + random.IntN(140)}[random.IntN(2)]
		bytes := []int{1 << 20, random.IntN(40_000)}[random.IntN(2)]
		messages := []protocol.MessageID{turn.Spec.UserMessageID, turn.Spec.AssistantMessageID, turn.Spec.UserMessageID}
		if random.IntN(3) > 0 {
			messages = messages[:1] // a step of a turn reads its own message again and again
		}
		for _, message := range messages {
			kept, more := read(w, turn, message, limits, bytes)
			w.Turns.ForgetHistories()
			fresh, older := read(w, turn, message, limits, bytes)
			if !reflect.DeepEqual(kept, fresh) || more != older {
				t.Fatalf("%d messages within %d bytes: %d, more %v; the database has %d, more %v", limits, bytes, len(kept), more, len(fresh), older)
			}
		}
		turn.End(nil)
		read(w, turn, turn.Spec.UserMessageID, 1000, 1<<20) // so that something is kept
		ended = append(ended, turn)
	}
}

func TestAnAnswerThatIsNotCompleteIsReadAgain(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := continued(w, 120)
	turn = w.Start(w.Request(&turn.Spec.ConversationID, "more"))
	before, _ := read(w, turn, turn.Spec.AssistantMessageID, 1000, 1<<20)
	turn.End(nil)
	after, _ := read(w, turn, turn.Spec.AssistantMessageID, 1000, 1<<20)
	last := len(before) - 1
	if before[last].Status != protocol.MessageStreaming || after[last].Status != protocol.MessageComplete || len(after[last].Parts) == 0 {
		t.Errorf("before its end %+v, after it %+v", before[last], after[last])
	}
}

func TestAKeptHistoryBelongsToItsAccount(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := continued(w, 120)
	read(w, turn, turn.Spec.UserMessageID, 1000, 1<<20)
	_, _, err := w.Turns.History(t.Context(), w.OtherAccount(), turn.Spec.ConversationID, turn.Spec.BranchID, turn.Spec.UserMessageID, 1000, 1<<20)
	if protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account reads a history: %v", err)
	}
}

func TestTheNextHistoryReadsOnlyWhatIsNew(t *testing.T) {
	metered(t, theNextHistoryReadsOnlyWhatIsNew)
}

func theNextHistoryReadsOnlyWhatIsNew(t *testing.T, w meteredWorld) {
	turn := continued(w.World, historyRows)
	w.analyze()
	read(w.World, turn, turn.Spec.UserMessageID, 1000, 10<<20)
	for range 3 {
		turn = w.Start(w.Request(&turn.Spec.ConversationID, "and then?"))
		restore := w.Turns.KeptHistory(w.Account, turn.Spec.ConversationID)
		wantPages(w.World, "the next history", 40, func() {
			restore()
			if messages, more := read(w.World, turn, turn.Spec.UserMessageID, 1000, 10<<20); len(messages) != 1000 || !more {
				t.Errorf("%d messages, more %v", len(messages), more)
			}
		})
		wantPages(w.World, "the same in the next step", 0, func() { read(w.World, turn, turn.Spec.UserMessageID, 1000, 10<<20) })
		turn.End(nil)
	}
}
