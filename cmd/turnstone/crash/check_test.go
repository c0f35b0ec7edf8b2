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

// record is all that is known of a round: what the clients did and saw, what the stand-ins were asked, what the database
// has. The checker decides from this alone.
type record struct {
	Operations []operation
	Seen       map[string]map[int64]fingerprint
	Changed    []string
	Views      []view
	Asked      []modelRequest
	Effects    []string
	Outages    []outage
	Stored     *snapshot
	Limit      limit // of the flood
}

// limit is so many at once and so many a second.
type limit struct {
	Burst     int
	PerSecond float64
}

// loggedTurn is a turn's log, read event by event.
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

// checker holds a record against the promises.
type checker struct {
	*record
	notes *notes
	logs  map[string]*loggedTurn
	text  map[string][]*loggedTurn // by the token of the question
}

// check finds every violation in a record.
func check(r *record, found *notes) {
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
	c.checkStarts()
	c.checkCreates()
	c.checkSteering()
	c.checkCancels()
	c.checkEffects()
	c.checkOutages()
	c.checkFlood()
	c.checkHistories()
}

func (c *checker) fail(kind, format string, args ...any) { c.notes.violation(kind, format, args...) }

// read takes a log apart and holds it to I3: contiguous, and the folded copy the same bytes.
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
				c.fail(badAnswer, "%s: %v", stored.ID, err)
				continue
			}
			if head.Sequence != next {
				c.fail(gaps, "%s: event %d where %d should be", stored.ID, head.Sequence, next)
			}
			turn.Events = append(turn.Events, loggedEvent{next, string(payload.EventType()), payload, fingerprintOf(line), n})
			next++
		}
		if part.Last != next-1 {
			c.fail(gaps, "%s: a chunk ends with %d and says %d", stored.ID, next-1, part.Last)
		}
		whole = append(whole, part.Frames...)
	}
	if next != stored.Next {
		c.fail(gaps, "%s: the log ends with %d, the turn says %d", stored.ID, next-1, stored.Next-1)
	}
	if stored.Terminal && (stored.ReplayLast != stored.Next-1 || !bytes.Equal(stored.Replay, whole)) {
		c.fail(changedBytes, "%s: its folded log has %d events and %d bytes, the log %d and %d", stored.ID, stored.ReplayLast, len(stored.Replay),
			stored.Next-1, len(whole))
	}
	return turn
}

// checkTurn holds a log to I4, I6 and I8.
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
				c.fail(doubleTerminal, "%s: event %d of %d ends it", turn.ID, e.Sequence, len(turn.Events))
			}
			if p.Status != turn.State {
				c.fail(doubleTerminal, "%s: it ended %s and is %s", turn.ID, p.Status, turn.State)
			}
		case *protocol.ToolStarted:
			tools[p.ToolID]++
		case *protocol.TurnCancelRequested:
			cancelledIn = e.Chunk
		}
	}
	switch {
	case ends > 1:
		c.fail(doubleTerminal, "%s has %d ends", turn.ID, ends)
	case ends == 0 || !turn.Terminal:
		c.fail(notAtRest, "%s is %s and has %d ends", turn.ID, turn.State, ends)
	}
	if turn.Terminal && turn.Usages != 1 {
		c.fail(doubledEffects, "%s has %d records of usage", turn.ID, turn.Usages)
	}
	for tool, times := range tools {
		if times > 1 {
			c.fail(doubledEffects, "%s: tool call %s was started %d times", turn.ID, tool, times)
		}
	}
	if parts, err := json.Marshal(append([]protocol.Part{}, fold.Parts()...)); turn.Terminal && (err != nil || string(parts) != turn.Answer) {
		c.fail(changedBytes, "%s: its message is not what its events make: %v %s, stored %s", turn.ID, err, parts, turn.Answer)
	}
	epoch := int32(1)
	for _, part := range turn.Chunks {
		if part.Epoch < epoch {
			c.fail(brokenOrder, "%s: event %d has epoch %d after %d", turn.ID, part.First, part.Epoch, epoch)
		}
		epoch = part.Epoch
	}
	if cancelledIn >= 0 {
		c.checkSilence(turn, cancelledIn)
	}
}

// checkSilence: after the chunk of a cancel at most one more brings text.
func (c *checker) checkSilence(turn *loggedTurn, cancelled int) {
	talking := map[int]bool{}
	for _, e := range turn.Events {
		if e.Chunk > cancelled && (e.Kind == "answer.delta" || e.Kind == "code.delta" || e.Kind == "reasoning.delta") {
			talking[e.Chunk] = true
		}
	}
	if len(talking) > 1 {
		c.fail(brokenOrder, "%s: %d chunks of text follow its cancel", turn.ID, len(talking))
	}
}

// checkReaders holds what readers saw to I3 and I5.
func (c *checker) checkReaders() {
	for _, changed := range c.Changed {
		c.fail(changedBytes, "two readers: %s", changed)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Seen)) {
		turn := c.logs[id]
		if turn == nil {
			c.fail(notDurable, "turn %s was seen and is not there", id)
			continue
		}
		for sequence, mark := range c.Seen[id] {
			switch {
			case sequence < 1 || sequence > int64(len(turn.Events)):
				c.fail(notDurable, "event %d of %s was seen, the log has %d", sequence, id, len(turn.Events))
			case turn.Events[sequence-1].Mark != mark:
				c.fail(changedBytes, "event %d of %s was seen otherwise than it is stored", sequence, id)
			}
		}
	}
}

// checkViews holds pages and snapshots to the log: each shows what the events up to its place make, or all of them.
func (c *checker) checkViews() {
	for _, v := range c.Views {
		turn := c.logs[v.Turn]
		switch {
		case turn == nil:
			c.fail(notDurable, "turn %s was shown in %s and is not there", v.Turn, v.Where)
		case v.Status == asQuestion:
			if v.Parts != turn.Question {
				c.fail(wrongPage, "the question of %s is %q in %s, and stored is %q", v.Turn, v.Parts, v.Where, turn.Question)
			}
		case v.Covers > int64(len(turn.Events)):
			c.fail(notDurable, "%s shows %s up to event %d, the log has %d", v.Where, v.Turn, v.Covers, len(turn.Events))
		case v.Covers == 0 && v.Status != turn.AnswerStatus:
			c.fail(wrongPage, "%s shows %s as %s, stored is %s", v.Where, v.Turn, v.Status, turn.AnswerStatus)
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
		c.fail(wrongPage, "%s shows %s up to event %d as %s, its events make %s (%v)", v.Where, v.Turn, v.Covers, v.Parts, parts, err)
	}
}

// checkWhole holds what is there to I2: all of an effect, and all at rest.
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
			c.fail(notWhole, "%s does not begin", id)
		}
	}
	for id, conversation := range c.Stored.Conversations {
		if conversation.Live != "" {
			c.fail(notAtRest, "conversation %s has the live turn %s", id, conversation.Live)
		}
	}
	for _, item := range c.Stored.FollowUps {
		if item.State == protocol.FollowUpQueued {
			c.fail(notAtRest, "follow-up %s is queued and nothing starts it", item.ID)
		}
		if turn := c.logs[item.Turn]; item.State == protocol.FollowUpStarted && (turn == nil || turn.FollowUp != item.ID) {
			c.fail(notWhole, "follow-up %s began turn %q, which is not there or not its own", item.ID, item.Turn)
		}
	}
}

// holding are the follow-ups that hold a token.
func (c *checker) holding(token string) (found []storedFollowUp) {
	for _, item := range c.Stored.FollowUps {
		if strings.Contains(item.Content, token) {
			found = append(found, item)
		}
	}
	return found
}

// checkStarts holds the starts to I1, I2 and I12: what was acknowledged is there, what was asked with one key is there
// once at most.
func (c *checker) checkStarts() {
	for token, asked := range c.grouped(opStart) {
		turns, items := c.text[token], c.holding(token)
		made := len(items)
		for _, turn := range turns {
			if turn.FollowUp == "" {
				made++
			}
		}
		if made > 1 {
			c.fail(doubledEffects, "start %s made %d turns or follow-ups", token, made)
		}
		answers := map[string]bool{}
		for _, o := range asked {
			if o.acknowledged() {
				answers[o.ID] = true
			}
		}
		if len(answers) > 1 {
			c.fail(notIdempotent, "start %s was answered with %v", token, slices.Sorted(maps.Keys(answers)))
		}
		for id := range answers {
			known := slices.ContainsFunc(turns, func(t *loggedTurn) bool { return t.ID == id }) ||
				slices.ContainsFunc(items, func(f storedFollowUp) bool { return f.ID == id })
			if !known {
				c.fail(lost, "start %s was acknowledged as %s, which is not there", token, id)
			}
		}
	}
}

// grouped are the operations of a kind, by what they wrote.
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
	for title, asked := range c.grouped(opCreate) {
		if len(made[title]) > 1 {
			c.fail(doubledEffects, "create %s made %v", title, made[title])
		}
		for _, o := range asked {
			if o.acknowledged() && !slices.Contains(made[title], o.ID) {
				c.fail(lost, "create %s was acknowledged as %s, there is %v", title, o.ID, made[title])
			}
		}
	}
}

// fate is what a log says of one input.
type fate struct {
	accepted, applied, returned int
	sequence                    int64
	followUp                    string
}

func (t *loggedTurn) fates() map[string]*fate {
	byClient, byID := map[string]*fate{}, map[protocol.SteeringID]*fate{}
	for _, e := range t.Events {
		switch p := e.Payload.(type) {
		case *protocol.SteeringAccepted:
			f := byClient[p.ClientSteeringID]
			if f == nil {
				f = &fate{}
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

// checkSteering holds the inputs to I1 and I7.
func (c *checker) checkSteering() {
	inSight := map[string]bool{} // turn token + steer token
	for _, request := range c.Asked {
		for _, steer := range request.Steers {
			inSight[request.Turn+steer] = true
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
			continue // found by checkReaders
		}
		f := turn.fates()[o.Key]
		sequence, was := acked[o.Turn+o.Key]
		switch {
		case was && (f == nil || f.sequence != sequence):
			c.fail(lost, "input %s to %s was acknowledged at %d, the log says %+v", o.Key, o.Turn, sequence, f)
		case !was && f != nil && o.Code == string(protocol.CodeSteeringClosed):
			c.fail(brokenOrder, "input %s to %s was refused and stands in the log", o.Key, o.Turn)
		case !was && f != nil && o.Status == http.StatusServiceUnavailable && !unsure[o.Turn+o.Key]:
			c.fail(untruthful503, "input %s to %s was refused with 503, never as unknown, and stands in the log at %d", o.Key, o.Turn, f.sequence)
		}
	}
	for id, turn := range c.logs {
		for key, f := range turn.fates() {
			c.checkFate(turn, id, key, f, inSight)
		}
	}
}

func (c *checker) checkFate(turn *loggedTurn, id, key string, f *fate, inSight map[string]bool) {
	if f.accepted > 1 {
		c.fail(doubledEffects, "input %s to %s was taken %d times", key, id, f.accepted)
	}
	if f.applied+f.returned != 1 {
		c.fail(brokenOrder, "input %s to %s was applied %d times and returned %d times", key, id, f.applied, f.returned)
	}
	if f.applied > 0 && !inSight[turnToken.FindString(turn.Question)+key] {
		c.fail(brokenOrder, "input %s to %s was applied and no model request had it", key, id)
	}
	items := c.holding(key)
	if len(items) != f.returned {
		c.fail(doubledEffects, "input %s to %s was returned %d times and stands in %d follow-ups", key, id, f.returned, len(items))
	}
	for _, item := range items {
		if item.ID != f.followUp {
			c.fail(lost, "input %s to %s is follow-up %s, the log says %s", key, id, item.ID, f.followUp)
		}
	}
}

// checkCancels holds the cancels to I6.
func (c *checker) checkCancels() {
	for _, o := range c.Operations {
		turn := c.logs[o.Turn]
		if o.Kind != opCancel || turn == nil {
			continue
		}
		switch {
		case o.Status == http.StatusAccepted && (turn.State != protocol.TurnCancelled || !turn.Cancelled):
			c.fail(lost, "cancel of %s was acknowledged, it ended %s, recorded %t", o.Turn, turn.State, turn.Cancelled)
		case o.Status == http.StatusAccepted && (o.Sequence < 1 || o.Sequence > int64(len(turn.Events)) ||
			turn.Events[o.Sequence-1].Kind != "turn.cancel_requested"):
			c.fail(lost, "cancel of %s was acknowledged at %d, which is no cancel", o.Turn, o.Sequence)
		}
	}
	c.checkRefusedCancels()
	for id, turn := range c.logs {
		if turn.Cancelled != (turn.State == protocol.TurnCancelled) {
			c.fail(brokenOrder, "%s ended %s, a cancel recorded: %t", id, turn.State, turn.Cancelled)
		}
	}
}

// checkRefusedCancels: a turn is cancelled only if somebody's cancel was acknowledged, or answered as unknown or not at all.
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
			c.fail(untruthful503, "every cancel of %s was refused with 503, never as unknown, and it was cancelled", id)
		}
	}
}

// checkEffects holds the tool to I8: never twice, never without a stored intent, and what is said to be done was done.
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
				_ = json.Unmarshal(p.Input, &input) // an input without a note is found below
				noteOf[p.ToolID], intended[input.Note] = input.Note, true
			case *protocol.ToolCompleted:
				if note := noteOf[p.ToolID]; p.State == protocol.ToolSucceeded && happened[note] == 0 {
					c.fail(lost, "%s: %s is said to be done and was not", id, note)
				}
			}
		}
	}
	for _, note := range slices.Sorted(maps.Keys(happened)) {
		if happened[note] > 1 {
			c.fail(doubledEffects, "%s happened %d times", note, happened[note])
		}
		if !intended[note] {
			c.fail(brokenOrder, "%s happened and no log says that it was meant to", note)
		}
	}
}

// limited are the operations that draw from a limit in Redis.
var limited = []string{opStart, opCreate, opSteer, opCancel, opDraft, opTitle, opFlood}

// checkOutages holds the limiter to the first half of I13: what it cannot decide is refused.
func (c *checker) checkOutages() {
	for _, o := range c.Operations {
		if !o.acknowledged() || o.Replayed || !slices.Contains(limited, o.Kind) {
			continue
		}
		for _, away := range c.Outages {
			if o.Began > away.From && o.Ended < away.To {
				c.fail(limiterOpen, "%s of %s was admitted at %s while the limiter was away", o.Kind, o.Client, o.Began)
			}
		}
	}
}

// checkFlood holds the limiter to the other half: in any time no more than its length allows, unless it forgot.
func (c *checker) checkFlood() {
	var since []operation
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
			since = append(since, o)
		}
	}
	for first := range since {
		admitted, last := 0, since[first].Ended
		for _, o := range since[first:] {
			if segment(o.Began) != segment(since[first].Began) || segment(o.Ended) != segment(since[first].Began) {
				break
			}
			admitted, last = admitted+1, max(last, o.Ended)
			most := float64(c.Limit.Burst) + c.Limit.PerSecond*(last-since[first].Began).Seconds() + 1
			if float64(admitted) > most {
				c.fail(limiterOpen, "%d writes within %s, %.0f are allowed", admitted, last-since[first].Began, most)
				return
			}
		}
	}
}

func (f *fate) String() string {
	if f == nil {
		return "nothing"
	}
	return fmt.Sprintf("%+v", *f)
}
