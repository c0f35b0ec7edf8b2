package crash

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// record is everything known about a round: the operations of the clients and what they saw, the requests to the
// stand-ins, and the content of the database. The checker uses nothing else.
type record struct {
	Operations []operation
	Witness    *verify.Witness
	Views      []view
	Asked      []modelRequest
	Effects    []string
	Outages    []outage
	Stored     *snapshot
	Limit      limit // of the writes of the flood
}

// limit is a burst and a rate per second.
type limit struct {
	Burst     int
	PerSecond float64
}

// loggedTurn is a turn with its log.
type loggedTurn struct {
	*storedTurn
	*verify.Turn
	ID string
}

// checker checks a record against the promises.
type checker struct {
	*record
	notes *findings
	logs  map[string]*loggedTurn
	text  map[string][]*loggedTurn // by the token in the user's message
}

// check finds every violation in a record.
func check(r *record, found *findings) {
	c := &checker{record: r, notes: found, logs: map[string]*loggedTurn{}, text: map[string][]*loggedTurn{}}
	for _, id := range slices.Sorted(maps.Keys(r.Stored.Turns)) {
		turn := c.read(r.Stored.Turns[id])
		c.logs[id] = turn
		if token := turnToken.FindString(turn.Question); token != "" {
			c.text[token] = append(c.text[token], turn)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.logs)) {
		c.checkTurn(c.logs[id])
	}
	tasks := c.checkTasks()
	c.checkReaders(tasks)
	c.checkViews()
	c.checkWhole()
	c.checkStarts(opStart)
	c.checkStarts(opEnqueue)
	c.checkQueues()
	c.checkCreates()
	c.checkItems()
	c.checkData()
	c.checkCommands()
	c.checkApplies()
	c.checkEffects()
	c.checkOutages()
	c.checkFlood()
	c.checkHistories()
}

func (c *checker) fail(kind, format string, args ...any) { c.notes.violation(kind, format, args...) }

func (c *checker) report(about string, found verify.Findings) {
	for _, one := range found {
		c.fail(string(one.Kind), "%s: %s", about, one.Text)
	}
}

// read reads a log and checks I3 and I4: it is contiguous and ends once, and its folded copy has the same bytes.
func (c *checker) read(stored *storedTurn) *loggedTurn {
	events, found := verify.ReadChunks(stored.ID, stored.Chunks)
	turn := &loggedTurn{stored, verify.ReadTurn(stored.ID, events), stored.ID}
	if int64(len(events)) != stored.Next-1 {
		c.fail(gaps, "%s: the log has %d events, but the turn's row says %d", stored.ID, len(events), stored.Next-1)
	}
	if stored.Terminal {
		found = append(found, verify.CheckCopy(stored.ID, stored.Chunks, stored.ReplayLast, stored.Replay)...)
	}
	c.report(stored.ID, append(found, turn.Findings...))
	return turn
}

// checkTurn checks a log against the rows of its turn: I4, I6 and I8.
func (c *checker) checkTurn(turn *loggedTurn) {
	id := turn.ID
	switch {
	case turn.End == nil || !turn.Terminal:
		c.fail(notAtRest, "%s is %s, and its log ends with %+v", id, turn.State, turn.End)
	case turn.End.Status != turn.State:
		c.fail(doubleTerminal, "%s: the log says that it ended %s, its row says %s", id, turn.End.Status, turn.State)
	}
	if turn.Terminal && turn.Usages != 1 {
		c.fail(doubledEffects, "%s has %d usage records", id, turn.Usages)
	}
	if parts := verify.PartsJSON(turn.Parts); turn.Terminal && parts != turn.Answer {
		c.fail(changedBytes, "%s: its events produce a message that differs from the stored one: %s, stored %s", id, parts, turn.Answer)
	}
	if len(turn.Cancels) > 0 {
		c.checkTextAfterCancel(turn)
	}
}

// checkTextAfterCancel checks that at most one chunk with text follows the chunk of a cancel.
func (c *checker) checkTextAfterCancel(turn *loggedTurn) {
	withText := 0
	for _, part := range turn.Chunks {
		if part.First > turn.Cancels[0] && slices.ContainsFunc(verify.Events(part.Frames), func(e verify.Event) bool {
			return e.Type == "answer.delta" || e.Type == "code.delta" || e.Type == "reasoning.delta"
		}) {
			withText++
		}
	}
	if withText > 1 {
		c.fail(brokenOrder, "%s: %d chunks of text follow its cancel", turn.ID, withText)
	}
}

// checkReaders checks the events that readers saw against I3 and I5.
func (c *checker) checkReaders(tasks map[string][]verify.Event) {
	c.report("two readers", c.Witness.Findings())
	for _, id := range c.Witness.Logs() {
		events, stored := tasks[id]
		if turn := c.logs[id]; turn != nil {
			events, stored = turn.Events, true
		}
		if !stored {
			c.fail(notDurable, "%s was seen and is not stored", id)
			continue
		}
		_, found := c.Witness.CheckLog(id, events, time.Time{})
		c.report(id, found)
	}
}

// checkViews compares pages and snapshots with the log: each message in them must be what the events up to its position
// produce, or all events if the turn has ended.
func (c *checker) checkViews() {
	for _, v := range c.Views {
		turn := c.logs[v.Turn]
		switch {
		case turn == nil:
			c.fail(notDurable, "turn %s was shown in %s and is not stored", v.Turn, v.Where)
		case v.Status == asQuestion:
			if v.Parts != turn.Question {
				c.fail(wrongPage, "the user's message of %s is %q in %s, but %q is stored", v.Turn, v.Parts, v.Where, turn.Question)
			}
		case v.Covers == 0 && v.Status != turn.AnswerStatus:
			c.fail(wrongPage, "%s shows %s as %s, but %s is stored", v.Where, v.Turn, v.Status, turn.AnswerStatus)
		default:
			c.report(v.Turn, turn.CheckMessage(v.Where, v.Covers, v.Parts))
		}
	}
}

// checkWhole checks the database against I2 and I4: every effect is stored completely, and no turn or queue is
// unfinished.
func (c *checker) checkWhole() {
	for _, message := range c.Stored.Messages {
		if message.Turn == "" {
			c.fail(notWhole, "a message has no turn: %s", message.Text)
		}
	}
	for id, turn := range c.logs {
		if turn.Question == "" || turn.AnswerStatus == "" || turn.AnswerStatus == string(protocol.MessageStreaming) {
			c.fail(notWhole, "%s: question %q, answer %q", id, turn.Question, turn.AnswerStatus)
		}
		if len(turn.Events) == 0 {
			c.fail(notWhole, "the log of %s is empty", id)
		}
	}
	for id, conversation := range c.Stored.Conversations {
		if conversation.Live != "" {
			c.fail(notAtRest, "conversation %s has the live turn %s", id, conversation.Live)
		}
	}
	for _, item := range c.Stored.FollowUps {
		if item.State == protocol.FollowUpQueued {
			c.fail(notAtRest, "follow-up %s is still queued", item.ID)
		}
		if turn := c.logs[item.Turn]; item.State == protocol.FollowUpStarted && (turn == nil || turn.FollowUp != item.ID) {
			c.fail(notWhole, "follow-up %s started turn %q, which is not stored or does not belong to it", item.ID, item.Turn)
		}
	}
}

// followUpsWith returns the follow-ups whose content contains a token.
func (c *checker) followUpsWith(token string) (found []storedFollowUp) {
	for _, item := range c.Stored.FollowUps {
		if strings.Contains(item.Content, token) {
			found = append(found, item)
		}
	}
	return found
}

// checkStarts checks the starts, or the follow-ups that were added to a queue, against I1, I2 and I12: an acknowledged one
// is stored, and those with the same key have at most one effect.
func (c *checker) checkStarts(kind string) {
	stored := map[string][]string{}
	for token := range c.grouped(kind) {
		for _, turn := range c.text[token] {
			if turn.FollowUp == "" {
				stored[token] = append(stored[token], turn.ID)
			}
		}
		for _, item := range c.followUpsWith(token) {
			stored[token] = append(stored[token], item.ID)
		}
	}
	c.checkWrites(kind, stored)
}

// checkWrites checks the operations of a kind that create something, by the text that they write.
func (c *checker) checkWrites(kind string, stored map[string][]string) {
	var writes []verify.Write
	for _, o := range c.Operations {
		if o.Kind == kind {
			writes = append(writes, verify.Write{What: o.Text, ID: o.ID, Outcome: o.outcome()})
		}
	}
	c.report(kind, verify.CheckWrites(writes, stored))
}

// grouped returns the operations of a kind, grouped by the text that they wrote.
func (c *checker) grouped(kind string) map[string][]operation {
	groups := map[string][]operation{}
	for _, o := range c.Operations {
		if o.Kind == kind {
			groups[o.Text] = append(groups[o.Text], o)
		}
	}
	return groups
}

func (c *checker) checkCreates() {
	made := map[string][]string{}
	for id, conversation := range c.Stored.Conversations {
		made[conversation.Title] = append(made[conversation.Title], id)
	}
	c.checkWrites(opCreate, made)
}

// checkCommands checks the steering inputs and the cancels against I1, I6 and I7.
func (c *checker) checkCommands() {
	inRequests := map[string]bool{} // inputs that a model request contains: turn token + steer token
	for _, request := range c.Asked {
		for _, steer := range request.Steers {
			inRequests[request.Turn+steer] = true
		}
	}
	commands, decided := map[string][]verify.Command{}, map[string][]verify.Decision{}
	for _, o := range c.Operations {
		if o.Kind == opDecide {
			decided[o.Turn] = append(decided[o.Turn], verify.Decision{Approval: o.Key, Decision: protocol.Decision(o.Text), Outcome: o.outcome(), Sequence: o.Sequence})
		}
		if o.Kind == opSteer || o.Kind == opCancel {
			commands[o.Turn] = append(commands[o.Turn], verify.Command{Input: o.Key, Outcome: o.outcome(), Sequence: o.Sequence})
		}
	}
	for id, turn := range c.logs {
		c.report(id, turn.CheckCommands(commands[id]))
		c.report(id, turn.CheckApprovals(decided[id]))
		if turn.Cancelled != (turn.State == protocol.TurnCancelled) {
			c.fail(brokenOrder, "%s ended %s, a cancel recorded: %t", id, turn.State, turn.Cancelled)
		}
		for key, input := range turn.Inputs {
			c.checkInput(turn, key, input, inRequests)
		}
	}
}

// checkInput checks that an input that was applied was in a model request, and that one that was returned is one
// follow-up.
func (c *checker) checkInput(turn *loggedTurn, key string, input *verify.Input, inRequests map[string]bool) {
	id := turn.ID
	if input.Applied > 0 && !inRequests[turnToken.FindString(turn.Question)+key] {
		c.fail(brokenOrder, "input %s to %s was applied, but no model request contained it", key, id)
	}
	items := c.followUpsWith(key)
	if len(items) != input.Returned {
		c.fail(doubledEffects, "input %s to %s was returned %d times but is in %d follow-ups", key, id, input.Returned, len(items))
	}
	for _, item := range items {
		if input.FollowUpID == nil || item.ID != input.FollowUpID.String() {
			c.fail(lost, "input %s to %s is follow-up %s, the log says %v", key, id, item.ID, input.FollowUpID)
		}
	}
}

// checkApplies checks the commands that apply a pending input at once: an acknowledged one is stored, and every repeat
// of it gets the same receipt.
func (c *checker) checkApplies() {
	first := map[string]operation{} // by turn and key; the first one that was acknowledged
	for _, o := range c.Operations {
		turn := c.logs[o.Turn]
		if o.Kind != opApply || turn == nil {
			continue
		}
		before, known := first[o.Turn+o.Key]
		switch {
		case o.acknowledged() && known && before.Sequence != o.Sequence:
			c.fail(doubledEffects, "applying %s to %s was acknowledged at %d and at %d", o.Key, o.Turn, before.Sequence, o.Sequence)
		case o.acknowledged() && !known:
			first[o.Turn+o.Key] = o
			if !turn.applies(o.Sequence) {
				c.fail(lost, "applying %s to %s was acknowledged as event %d, which is another event", o.Key, o.Turn, o.Sequence)
			}
		case known && o.Began > before.Ended && o.Status == http.StatusConflict:
			c.fail(lost, "applying %s to %s was acknowledged at %d, and its repeat was refused: %s", o.Key, o.Turn, before.Sequence, o.Code)
		}
	}
}

// applies reports whether the event with a sequence announces that an input is applied at once.
func (t *loggedTurn) applies(sequence int64) bool {
	if sequence < 1 || sequence > int64(len(t.Events)) {
		return false
	}
	progress, ok := t.Payloads[sequence-1].(*protocol.ActivityProgress)
	return ok && progress.Activity == "applying_input"
}

// checkEffects checks the tools against I8: an effect never happens twice and never without a stored intent and, if the call needs
// one, an approval of exactly this input; and an effect that the log reports as done did happen.
func (c *checker) checkEffects() {
	happened, intended := map[string]int{}, map[string]bool{}
	for _, note := range c.Effects {
		happened[note]++
	}
	for id, turn := range c.logs {
		noteOf := map[protocol.ToolID]string{}
		for _, payload := range turn.Payloads {
			switch p := payload.(type) {
			case *protocol.ToolStarted:
				var input struct{ Note string }
				_ = json.Unmarshal(p.Input, &input) // a missing note is reported below
				noteOf[p.ToolID] = input.Note
				intended[input.Note] = p.ToolName != "asked_effect"
			case *protocol.ApprovalResolved:
				if len(p.Input) > 0 {
					var input struct{ Note string }
					_ = json.Unmarshal(p.Input, &input)
					noteOf[p.ToolID] = input.Note
				}
				state, err := p.Decision.State()
				intended[noteOf[p.ToolID]] = err == nil && state == protocol.ApprovalApproved
			case *protocol.ToolCompleted:
				if note := noteOf[p.ToolID]; p.State == protocol.ToolSucceeded && happened[note] == 0 {
					c.fail(lost, "%s: the log reports %s as done, but it did not happen", id, note)
				}
			}
		}
	}
	for _, note := range slices.Sorted(maps.Keys(happened)) {
		if happened[note] > 1 {
			c.fail(doubledEffects, "%s happened %d times", note, happened[note])
		}
		if !intended[note] {
			c.fail(brokenOrder, "%s happened, but no log contains its intent, approved where that is needed", note)
		}
	}
}

// limited lists the operations that draw from a limit in Redis.
var limited = []string{opStart, opEnqueue, opRelease, opCreate, opSteer, opApply, opCancel, opDecide, opDraft, opTitle, opFlood}

// checkOutages checks the first half of I13: requests that the limiter cannot decide are refused.
func (c *checker) checkOutages() {
	for _, o := range c.Operations {
		if !o.acknowledged() || o.Replayed || !slices.Contains(limited, o.Kind) {
			continue
		}
		for _, away := range c.Outages {
			if o.Began > away.From && o.Ended < away.To {
				c.fail(limiterOpen, "%s of %s was admitted at %s while the limiter was unreachable", o.Kind, o.Client, o.Began)
			}
		}
	}
}

// checkFlood checks the second half of I13: no time span contains more admitted writes than the limit allows for its
// length, unless the limiter lost its counters in between.
func (c *checker) checkFlood() {
	var writes []operation
	ends := slices.Clone(c.Outages)
	slices.SortFunc(ends, func(a, b outage) int { return int(a.From - b.From) })
	segment := func(t time.Duration) int {
		n := 0
		for _, away := range ends {
			if away.Forgets && t > away.From {
				n++
			}
		}
		return n
	}
	for _, o := range c.Operations {
		if o.Kind == opFlood && o.acknowledged() {
			writes = append(writes, o)
		}
	}
	for first := range writes {
		admitted, last := 0, writes[first].Ended
		for _, o := range writes[first:] {
			if segment(o.Began) != segment(writes[first].Began) || segment(o.Ended) != segment(writes[first].Began) {
				break
			}
			admitted, last = admitted+1, max(last, o.Ended)
			most := float64(c.Limit.Burst) + c.Limit.PerSecond*(last-writes[first].Began).Seconds() + 1
			if float64(admitted) > most {
				c.fail(limiterOpen, "%d writes within %s, at most %.0f are allowed", admitted, last-writes[first].Began, most)
				return
			}
		}
	}
}
