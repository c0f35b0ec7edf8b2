package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"turnstone/protocol"
)

// record is everything known about a round: the operations of the clients and what they saw, the requests to the
// stand-ins, and the content of the database. The checker uses nothing else.
type record struct {
	Operations []operation
	Seen       map[string]map[int64]fingerprint
	Changed    []string
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

// loggedTurn is a turn with its log, decoded event by event.
type loggedTurn struct {
	*storedTurn
	Events []loggedEvent
}

type loggedEvent struct {
	Sequence int64
	Kind     string
	Payload  protocol.Payload
	Mark     fingerprint
	Chunk    int
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
	c.checkReaders()
	c.checkViews()
	c.checkWhole()
	c.checkStarts(opStart)
	c.checkStarts(opEnqueue)
	c.checkQueues()
	c.checkCreates()
	c.checkSteering()
	c.checkApplies()
	c.checkCancels()
	c.checkEffects()
	c.checkOutages()
	c.checkFlood()
	c.checkHistories()
}

func (c *checker) fail(kind, format string, args ...any) { c.notes.violation(kind, format, args...) }

// read decodes a log and checks I3: the log is contiguous, and its folded copy has the same bytes.
func (c *checker) read(stored *storedTurn) *loggedTurn {
	turn, next, whole := &loggedTurn{storedTurn: stored}, int64(1), []byte(nil)
	for n, part := range stored.Chunks {
		if part.First != next {
			c.fail(gaps, "%s: event %d follows %d", stored.ID, part.First, next-1)
		}
		next = part.First
		for line := range protocol.FrameLines(part.Frames) {
			head, payload, err := protocol.DecodeEvent(line)
			if err != nil {
				c.fail(badResponse, "%s: %v", stored.ID, err)
				continue
			}
			if head.Sequence != next {
				c.fail(gaps, "%s: event %d, want event %d", stored.ID, head.Sequence, next)
			}
			turn.Events = append(turn.Events, loggedEvent{next, string(payload.EventType()), payload, fingerprintOf(line), n})
			next++
		}
		if part.Last != next-1 {
			c.fail(gaps, "%s: a chunk ends with event %d, but its row says %d", stored.ID, next-1, part.Last)
		}
		whole = append(whole, part.Frames...)
	}
	if next != stored.Next {
		c.fail(gaps, "%s: the log ends with event %d, but the turn's row says %d", stored.ID, next-1, stored.Next-1)
	}
	if stored.Terminal && (stored.ReplayLast != stored.Next-1 || !bytes.Equal(stored.Replay, whole)) {
		c.fail(changedBytes, "%s: the folded log has %d events and %d bytes, the log has %d and %d", stored.ID, stored.ReplayLast, len(stored.Replay),
			stored.Next-1, len(whole))
	}
	return turn
}

// checkTurn checks a log against I4, I6 and I8.
func (c *checker) checkTurn(turn *loggedTurn) {
	ends, tools := 0, map[protocol.ToolID]int{}
	cancelledIn := -1
	var fold protocol.Fold
	for n, e := range turn.Events {
		fold.Apply(e.Payload)
		switch p := e.Payload.(type) {
		case *protocol.TurnFinished:
			ends++
			if n != len(turn.Events)-1 {
				c.fail(doubleTerminal, "%s: event %d of %d is terminal", turn.ID, e.Sequence, len(turn.Events))
			}
			if p.Status != turn.State {
				c.fail(doubleTerminal, "%s: the log says that it ended %s, its row says %s", turn.ID, p.Status, turn.State)
			}
		case *protocol.ToolStarted:
			tools[p.ToolID]++
		case *protocol.TurnCancelRequested:
			cancelledIn = e.Chunk
		}
	}
	switch {
	case ends > 1:
		c.fail(doubleTerminal, "%s has %d terminal events", turn.ID, ends)
	case ends == 0 || !turn.Terminal:
		c.fail(notAtRest, "%s is %s and has %d terminal events", turn.ID, turn.State, ends)
	}
	if turn.Terminal && turn.Usages != 1 {
		c.fail(doubledEffects, "%s has %d usage records", turn.ID, turn.Usages)
	}
	for tool, times := range tools {
		if times > 1 {
			c.fail(doubledEffects, "%s: tool call %s was started %d times", turn.ID, tool, times)
		}
	}
	if parts, err := json.Marshal(append([]protocol.Part{}, fold.Parts()...)); turn.Terminal && (err != nil || string(parts) != turn.Answer) {
		c.fail(changedBytes, "%s: its events produce a message that differs from the stored one: %v %s, stored %s", turn.ID, err, parts, turn.Answer)
	}
	epoch := int32(1)
	for _, part := range turn.Chunks {
		if part.Epoch < epoch {
			c.fail(brokenOrder, "%s: event %d has epoch %d after %d", turn.ID, part.First, part.Epoch, epoch)
		}
		epoch = part.Epoch
	}
	if cancelledIn >= 0 {
		c.checkTextAfterCancel(turn, cancelledIn)
	}
}

// checkTextAfterCancel checks that at most one chunk with text follows the chunk of a cancel.
func (c *checker) checkTextAfterCancel(turn *loggedTurn, cancelled int) {
	withText := map[int]bool{}
	for _, e := range turn.Events {
		if e.Chunk > cancelled && (e.Kind == "answer.delta" || e.Kind == "code.delta" || e.Kind == "reasoning.delta") {
			withText[e.Chunk] = true
		}
	}
	if len(withText) > 1 {
		c.fail(brokenOrder, "%s: %d chunks of text follow its cancel", turn.ID, len(withText))
	}
}

// checkReaders checks the events that readers saw against I3 and I5.
func (c *checker) checkReaders() {
	for _, changed := range c.Changed {
		c.fail(changedBytes, "two readers: %s", changed)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Seen)) {
		turn := c.logs[id]
		if turn == nil {
			c.fail(notDurable, "turn %s was seen and is not stored", id)
			continue
		}
		for sequence, mark := range c.Seen[id] {
			switch {
			case sequence < 1 || sequence > int64(len(turn.Events)):
				c.fail(notDurable, "event %d of %s was seen, the log has %d", sequence, id, len(turn.Events))
			case turn.Events[sequence-1].Mark != mark:
				c.fail(changedBytes, "event %d of %s was seen with bytes that differ from the stored ones", sequence, id)
			}
		}
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
		case v.Covers > int64(len(turn.Events)):
			c.fail(notDurable, "%s shows %s up to event %d, but the log has %d", v.Where, v.Turn, v.Covers, len(turn.Events))
		case v.Covers == 0 && v.Status != turn.AnswerStatus:
			c.fail(wrongPage, "%s shows %s as %s, but %s is stored", v.Where, v.Turn, v.Status, turn.AnswerStatus)
		default:
			c.checkParts(turn, v)
		}
	}
}

func (c *checker) checkParts(turn *loggedTurn, v view) {
	var fold protocol.Fold
	for _, e := range turn.Events {
		if v.Covers == 0 || e.Sequence <= v.Covers {
			fold.Apply(e.Payload)
		}
	}
	parts, err := json.Marshal(append([]protocol.Part{}, fold.Parts()...))
	if err != nil || string(parts) != v.Parts {
		c.fail(wrongPage, "%s shows %s up to event %d as %s, but its events produce %s (%v)", v.Where, v.Turn, v.Covers, v.Parts, parts, err)
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
		if len(turn.Events) == 0 || turn.Events[0].Kind != "turn.started" {
			c.fail(notWhole, "the log of %s does not start with turn.started", id)
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
	for token, operations := range c.grouped(kind) {
		turns, items := c.text[token], c.followUpsWith(token)
		made := len(items)
		for _, turn := range turns {
			if turn.FollowUp == "" {
				made++
			}
		}
		if made > 1 {
			c.fail(doubledEffects, "%s %s made %d turns or follow-ups", kind, token, made)
		}
		ids := map[string]bool{}
		for _, o := range operations {
			if o.acknowledged() {
				ids[o.ID] = true
			}
		}
		if len(ids) > 1 {
			c.fail(notIdempotent, "%s %s returned %v", kind, token, slices.Sorted(maps.Keys(ids)))
		}
		for id := range ids {
			known := slices.ContainsFunc(turns, func(t *loggedTurn) bool { return t.ID == id }) ||
				slices.ContainsFunc(items, func(f storedFollowUp) bool { return f.ID == id })
			if !known {
				c.fail(lost, "%s %s was acknowledged as %s, which is not stored", kind, token, id)
			}
		}
	}
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
	for title, operations := range c.grouped(opCreate) {
		if len(made[title]) > 1 {
			c.fail(doubledEffects, "create %s made %v", title, made[title])
		}
		for _, o := range operations {
			if o.acknowledged() && !slices.Contains(made[title], o.ID) {
				c.fail(lost, "create %s was acknowledged as %s, but %v are stored", title, o.ID, made[title])
			}
		}
	}
}

// inputOutcome counts what a log contains about one steering input.
type inputOutcome struct {
	accepted, applied, returned int
	sequence                    int64
	followUp                    string
}

func (t *loggedTurn) inputOutcomes() map[string]*inputOutcome {
	byClient, byID := map[string]*inputOutcome{}, map[protocol.SteeringID]*inputOutcome{}
	for _, e := range t.Events {
		switch p := e.Payload.(type) {
		case *protocol.SteeringAccepted:
			f := byClient[p.ClientSteeringID]
			if f == nil {
				f = &inputOutcome{}
				byClient[p.ClientSteeringID] = f
			}
			f.accepted++
			f.sequence, byID[p.SteeringID] = e.Sequence, f
		case *protocol.SteeringApplied:
			if f := byID[p.SteeringID]; f != nil {
				f.applied++
			}
		case *protocol.SteeringReturned:
			if f := byID[p.SteeringID]; f != nil {
				f.returned++
				if p.FollowUpID != nil {
					f.followUp = p.FollowUpID.String()
				}
			}
		}
	}
	return byClient
}

// checkSteering checks the steering inputs against I1 and I7.
func (c *checker) checkSteering() {
	inRequests := map[string]bool{} // inputs that a model request contains: turn token + steer token
	for _, request := range c.Asked {
		for _, steer := range request.Steers {
			inRequests[request.Turn+steer] = true
		}
	}
	acked, unsure := map[string]int64{}, map[string]bool{}
	for _, o := range c.Operations {
		switch {
		case o.Kind == opSteer && o.acknowledged():
			acked[o.Turn+o.Key] = o.Sequence
		case o.Kind == opSteer && o.open():
			unsure[o.Turn+o.Key] = true
		}
	}
	for _, o := range c.Operations {
		if o.Kind != opSteer {
			continue
		}
		turn := c.logs[o.Turn]
		if turn == nil {
			continue // reported by checkReaders
		}
		f := turn.inputOutcomes()[o.Key]
		sequence, known := acked[o.Turn+o.Key]
		switch {
		case known && (f == nil || f.sequence != sequence):
			c.fail(lost, "input %s to %s was acknowledged at %d, the log says %+v", o.Key, o.Turn, sequence, f)
		case !known && f != nil && o.Code == string(protocol.CodeSteeringClosed):
			c.fail(brokenOrder, "input %s to %s was refused but is in the log", o.Key, o.Turn)
		case !known && f != nil && o.Status == http.StatusServiceUnavailable && !unsure[o.Turn+o.Key]:
			c.fail(untruthful503, "input %s to %s was refused with 503, never with an unknown outcome, but is in the log as event %d", o.Key, o.Turn, f.sequence)
		}
	}
	for id, turn := range c.logs {
		for key, f := range turn.inputOutcomes() {
			c.checkInputOutcome(turn, id, key, f, inRequests)
		}
	}
}

func (c *checker) checkInputOutcome(turn *loggedTurn, id, key string, f *inputOutcome, inRequests map[string]bool) {
	if f.accepted > 1 {
		c.fail(doubledEffects, "input %s to %s was accepted %d times", key, id, f.accepted)
	}
	if f.applied+f.returned != 1 {
		c.fail(brokenOrder, "input %s to %s was applied %d times and returned %d times", key, id, f.applied, f.returned)
	}
	if f.applied > 0 && !inRequests[turnToken.FindString(turn.Question)+key] {
		c.fail(brokenOrder, "input %s to %s was applied, but no model request contained it", key, id)
	}
	items := c.followUpsWith(key)
	if len(items) != f.returned {
		c.fail(doubledEffects, "input %s to %s was returned %d times but is in %d follow-ups", key, id, f.returned, len(items))
	}
	for _, item := range items {
		if item.ID != f.followUp {
			c.fail(lost, "input %s to %s is follow-up %s, the log says %s", key, id, item.ID, f.followUp)
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
	progress, ok := t.Events[sequence-1].Payload.(*protocol.ActivityProgress)
	return ok && progress.Activity == "applying_input"
}

// checkCancels checks the cancels against I6.
func (c *checker) checkCancels() {
	for _, o := range c.Operations {
		turn := c.logs[o.Turn]
		if o.Kind != opCancel || turn == nil {
			continue
		}
		switch {
		case o.Status == http.StatusAccepted && (turn.State != protocol.TurnCancelled || !turn.Cancelled):
			c.fail(lost, "cancel of %s was acknowledged, but the turn ended %s (cancel recorded: %t)", o.Turn, turn.State, turn.Cancelled)
		case o.Status == http.StatusAccepted && (o.Sequence < 1 || o.Sequence > int64(len(turn.Events)) ||
			turn.Events[o.Sequence-1].Kind != "turn.cancel_requested"):
			c.fail(lost, "cancel of %s was acknowledged as event %d, which is not a cancel request", o.Turn, o.Sequence)
		}
	}
	c.checkRefusedCancels()
	for id, turn := range c.logs {
		if turn.Cancelled != (turn.State == protocol.TurnCancelled) {
			c.fail(brokenOrder, "%s ended %s, a cancel recorded: %t", id, turn.State, turn.Cancelled)
		}
	}
}

// checkRefusedCancels checks that a turn was cancelled only if a cancel was acknowledged, returned an unknown outcome,
// or got no response.
func (c *checker) checkRefusedCancels() {
	refused, possible := map[string]bool{}, map[string]bool{}
	for _, o := range c.Operations {
		if o.Kind == opCancel {
			refused[o.Turn] = refused[o.Turn] || o.Status == http.StatusServiceUnavailable
			possible[o.Turn] = possible[o.Turn] || o.acknowledged() || o.open()
		}
	}
	for id, turn := range c.logs {
		if turn.Cancelled && !possible[id] && refused[id] {
			c.fail(untruthful503, "every cancel of %s was refused with 503, never with an unknown outcome, but it was cancelled", id)
		}
	}
}

// checkEffects checks the tool against I8: an effect never happens twice and never without a stored intent, and an
// effect that the log reports as done did happen.
func (c *checker) checkEffects() {
	happened, intended := map[string]int{}, map[string]bool{}
	for _, note := range c.Effects {
		happened[note]++
	}
	for id, turn := range c.logs {
		noteOf := map[protocol.ToolID]string{}
		for _, e := range turn.Events {
			switch p := e.Payload.(type) {
			case *protocol.ToolStarted:
				var input struct{ Note string }
				_ = json.Unmarshal(p.Input, &input) // a missing note is reported below
				noteOf[p.ToolID], intended[input.Note] = input.Note, true
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
			c.fail(brokenOrder, "%s happened, but no log contains its intent", note)
		}
	}
}

// limited lists the operations that draw from a limit in Redis.
var limited = []string{opStart, opEnqueue, opRelease, opCreate, opSteer, opApply, opCancel, opDraft, opTitle, opFlood}

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

func (f *inputOutcome) String() string {
	if f == nil {
		return "nothing"
	}
	return fmt.Sprintf("%+v", *f)
}
