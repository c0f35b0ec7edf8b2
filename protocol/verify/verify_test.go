package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/verify"
)

var (
	turnID   = protocol.NewTurnID()
	part     = protocol.NewPartID()
	applied  = protocol.NewSteeringID()
	returned = protocol.NewSteeringID()
	followUp = protocol.NewFollowUpID()
	tool     = protocol.DeriveToolID(turnID, 1)
)

// legalTurn is a turn with a text, a tool call, an input that was applied and one that was returned.
func legalTurn() []protocol.Payload {
	return []protocol.Payload{
		&protocol.TurnStarted{ConversationID: protocol.NewConversationID(), BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID()},
		&protocol.AnswerStarted{PartID: part, Format: "markdown"},
		&protocol.AnswerDelta{PartID: part, Delta: "Größe"},
		&protocol.AnswerDelta{PartID: part, Offset: len("Größe"), Delta: " 2"},
		&protocol.AnswerCompleted{PartID: part, Text: "Größe 2"},
		&protocol.ToolStarted{PartID: protocol.NewPartID(), ToolID: tool},
		&protocol.SteeringAccepted{SteeringID: applied, ClientSteeringID: "one", Text: "1"},
		&protocol.SteeringAccepted{SteeringID: returned, ClientSteeringID: "two", Text: "2"},
		&protocol.SteeringApplied{SteeringID: applied, PartID: protocol.NewPartID()},
		&protocol.SteeringReturned{SteeringID: returned, FollowUpID: &followUp},
		&protocol.TurnFinished{Status: protocol.TurnCompleted, MessageID: protocol.NewMessageID()},
	}
}

// withTool completes the tool call of legalTurn.
func withTool(events []protocol.Payload) []protocol.Payload {
	started := events[5].(*protocol.ToolStarted)
	return slices.Insert(events, 6, protocol.Payload(&protocol.ToolCompleted{PartID: started.PartID, ToolID: tool, State: protocol.ToolSucceeded}))
}

func legal() []protocol.Payload { return withTool(legalTurn()) }

// framesOf returns the stored form of events. The last sequence in their end is right.
func framesOf(t *testing.T, events []protocol.Payload) []byte {
	t.Helper()
	for i, payload := range events {
		if end, is := payload.(*protocol.TurnFinished); is {
			end.LastSequence = int64(i) + 1
		}
	}
	frames, err := protocol.AppendEvents(nil, turnID, 1, time.Unix(0, 0), events)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

func read(t *testing.T, events []protocol.Payload) *verify.Turn {
	t.Helper()
	return verify.ReadTurn(turnID.String(), verify.Events(framesOf(t, events)))
}

// want fails unless a finding has the wanted kind; "" stands for no finding at all.
func want(t *testing.T, found verify.Findings, kind verify.Kind) {
	t.Helper()
	if kind == "" {
		if len(found) > 0 {
			t.Errorf("found %v", found)
		}
		return
	}
	if !slices.ContainsFunc(found, func(f verify.Finding) bool { return f.Kind == kind }) {
		t.Errorf("found %v, want %s", found, kind)
	}
}

func TestALegalTurnHasNoFindings(t *testing.T) {
	turn := read(t, legal())
	want(t, turn.Findings, "")
	want(t, turn.CheckEnd(), "")
	want(t, turn.CheckMessage("a page", 0, verify.PartsJSON(turn.Parts)), "")
	want(t, turn.CheckCommands([]verify.Command{
		{Input: "one", Outcome: verify.Unknown},
		{Input: "one", Outcome: verify.Acknowledged, Sequence: 8},
		{Input: "two", Outcome: verify.Acknowledged, Sequence: 9},
		{Input: "three", Outcome: verify.Closed},
		{Input: "four", Outcome: verify.Refused},
		{Outcome: verify.Closed},
	}), "")
	reader := &verify.Reader{}
	for _, e := range turn.Events {
		reader.Take(e.Sequence, []byte(e.Type), []byte(e.Data))
	}
	want(t, reader.Findings, "")
	if reader.Digest != turn.Digest || reader.End == nil || !reader.Ended || reader.Inputs["two"].FollowUpID == nil || reader.ConversationID.IsZero() {
		t.Errorf("a reader has %+v, the turn %+v", reader, turn.Reader)
	}
}

func TestEachViolationInTheLogOfATurnIsFound(t *testing.T) {
	insert := func(at int, more ...protocol.Payload) []protocol.Payload { return slices.Insert(legal(), at, more...) }
	for name, c := range map[string]struct {
		kind   verify.Kind
		events []protocol.Payload
	}{
		"two ends":                     {verify.Ends, append(legal(), &protocol.TurnFinished{Status: protocol.TurnCompleted, MessageID: protocol.NewMessageID()})},
		"an event after the end":       {verify.Ends, append(legal(), &protocol.TurnStateChanged{})},
		"no start":                     {verify.NotWhole, legal()[1:]},
		"two starts":                   {verify.NotWhole, insert(3, legal()[0])},
		"a delta with a wrong offset":  {verify.Order, insert(4, &protocol.AnswerDelta{PartID: part, Offset: 1, Delta: "x"})},
		"a delta after its part":       {verify.Order, insert(5, &protocol.AnswerDelta{PartID: part, Offset: 8, Delta: "x"})},
		"code in no part":              {verify.Order, insert(5, &protocol.CodeDelta{PartID: protocol.NewPartID(), Delta: "x"})},
		"reasoning in no part":         {verify.Order, insert(5, &protocol.ReasoningDelta{PartID: protocol.NewPartID(), Delta: "x"})},
		"a text without its last word": {verify.Changed, slices.Replace(legal(), 4, 5, protocol.Payload(&protocol.AnswerCompleted{PartID: part, Text: "Größe"}))},
		"an open part at the end":      {verify.Order, slices.Delete(legal(), 4, 5)},
		"a tool call without an end":   {verify.Order, legalTurn()},
		"a tool call that starts again": {verify.Doubled, insert(7,
			&protocol.ToolStarted{PartID: protocol.NewPartID(), ToolID: tool}, &protocol.ToolCompleted{ToolID: tool})},
		"an input that is applied before it is accepted": {verify.Order, insert(3, &protocol.SteeringApplied{SteeringID: applied, PartID: protocol.NewPartID()})},
	} {
		t.Run(name, func(t *testing.T) { want(t, read(t, c.events).Findings, c.kind) })
	}
	t.Run("no end", func(t *testing.T) { want(t, read(t, legal()[:8]).CheckEnd(), verify.NotAtRest) })
}

func TestEachViolationInTheEventsOfAReaderIsFound(t *testing.T) {
	events := verify.Events(framesOf(t, legal()))
	for name, c := range map[string]struct {
		kind   verify.Kind
		change func([]verify.Event) []verify.Event
	}{
		"a gap":          {verify.Gaps, func(e []verify.Event) []verify.Event { return slices.Delete(e, 3, 4) }},
		"an event twice": {verify.Repeated, func(e []verify.Event) []verify.Event { return slices.Insert(e, 3, e[2]) }},
		"an event after the end": {verify.Ends, func(e []verify.Event) []verify.Event {
			return append(e, verify.Event{Sequence: 13, Type: "turn.state"})
		}},
		"an end with a wrong last sequence": {verify.Ends, func(e []verify.Event) []verify.Event {
			e[11].Data = strings.Replace(e[11].Data, `"last_sequence":12`, `"last_sequence":11`, 1)
			return e
		}},
		"an end that is no JSON": {verify.Malformed, func(e []verify.Event) []verify.Event { e[11].Data = "{"; return e }},
	} {
		t.Run(name, func(t *testing.T) {
			changed, reader := c.change(slices.Clone(events)), &verify.Reader{}
			for _, e := range changed {
				reader.Take(e.Sequence, []byte(e.Type), []byte(e.Data))
			}
			want(t, reader.Findings, c.kind)
			turn := verify.ReadTurn(turnID.String(), changed)
			want(t, turn.Findings, c.kind)
			if same := read(t, legal()); turn.Digest == same.Digest || reader.Digest == same.Digest {
				t.Error("the digest is that of the legal log")
			}
		})
	}
	t.Run("the event of another turn", func(t *testing.T) {
		want(t, verify.ReadTurn(protocol.NewTurnID().String(), events).Findings, verify.Malformed)
	})
}

func TestAcknowledgedCommandsAreComparedWithTheLog(t *testing.T) {
	cancelled := func(status protocol.TurnState) []protocol.Payload {
		return []protocol.Payload{legal()[0], &protocol.TurnCancelRequested{}, &protocol.TurnFinished{Status: status, MessageID: protocol.NewMessageID()}}
	}
	acked := func(input string, sequence int64) verify.Command {
		return verify.Command{Input: input, Outcome: verify.Acknowledged, Sequence: sequence}
	}
	for name, c := range map[string]struct {
		kind     verify.Kind
		events   []protocol.Payload
		commands []verify.Command
	}{
		"an input that is gone":               {verify.Lost, legal(), []verify.Command{acked("three", 8)}},
		"an input under another sequence":     {verify.Lost, legal(), []verify.Command{acked("one", 7)}},
		"an input with two receipts":          {verify.Doubled, legal(), []verify.Command{acked("one", 7), acked("one", 8)}},
		"an input that was too late":          {verify.Order, legal(), []verify.Command{{Input: "one", Outcome: verify.Closed}}},
		"an input that was refused":           {verify.Untruthful, legal(), []verify.Command{{Input: "one", Outcome: verify.Refused}}},
		"an input of unknown outcome":         {"", legal(), []verify.Command{{Input: "one", Outcome: verify.Refused}, {Input: "one"}}},
		"an input that is accepted twice":     {verify.Doubled, slices.Insert(legal(), 9, legal()[7]), nil},
		"an input that is applied twice":      {verify.Order, slices.Insert(legal(), 10, legal()[9]), nil},
		"an input that is applied, returned":  {verify.Order, slices.Insert(legal(), 10, protocol.Payload(&protocol.SteeringReturned{SteeringID: applied, FollowUpID: &followUp})), nil},
		"an input without a use":              {verify.Order, slices.Delete(legal(), 9, 10), nil},
		"a returned input without follow-up":  {verify.Lost, slices.Replace(legal(), 10, 11, protocol.Payload(&protocol.SteeringReturned{SteeringID: returned})), nil},
		"a cancel":                            {"", cancelled(protocol.TurnCancelled), []verify.Command{acked("", 2), acked("", 2)}},
		"a cancel of unknown outcome":         {"", cancelled(protocol.TurnCancelled), []verify.Command{{}}},
		"a cancel that is gone":               {verify.Lost, legal(), []verify.Command{acked("", 2)}},
		"a cancel under an earlier sequence":  {verify.Lost, cancelled(protocol.TurnCancelled), []verify.Command{acked("", 1)}},
		"a cancel of a turn that completed":   {verify.Order, cancelled(protocol.TurnCompleted), []verify.Command{acked("", 2)}},
		"a cancel that was refused":           {verify.Untruthful, cancelled(protocol.TurnCancelled), []verify.Command{{Outcome: verify.Refused}}},
		"a turn that was cancelled by nobody": {verify.Order, slices.Replace(legal(), 11, 12, protocol.Payload(&protocol.TurnFinished{Status: protocol.TurnCancelled, MessageID: protocol.NewMessageID()})), nil},
	} {
		t.Run(name, func(t *testing.T) { want(t, read(t, c.events).CheckCommands(c.commands), c.kind) })
	}
}

// approvedTurn is a turn with a call that the user approves, one that the user rejects, and one that nobody decides.
func approvedTurn() []protocol.Payload {
	events := []protocol.Payload{legal()[0]}
	resolved := []protocol.Decision{protocol.ApproveOnce, protocol.RejectCall, protocol.DecisionExpired}
	for n := range resolved {
		call := protocol.DeriveToolID(turnID, n+1)
		events = append(events, &protocol.ToolStarted{PartID: part, ToolID: call}, &protocol.ApprovalRequested{PartID: part, ToolID: call, Approval: protocol.ApprovalRequest{
			ApprovalID: protocol.DeriveApprovalID(turnID, n+1), Options: []protocol.Decision{protocol.ApproveOnce, protocol.RejectCall},
		}})
	}
	for n, decision := range resolved { // the events 8 to 13
		call, by, state := protocol.DeriveToolID(turnID, n+1), protocol.DecidedByUser, protocol.ToolRejected
		if decision == protocol.DecisionExpired {
			by = protocol.DecidedByTimeout
		}
		if decision == protocol.ApproveOnce {
			state = protocol.ToolSucceeded
		}
		events = append(events, &protocol.ApprovalResolved{PartID: part, ToolID: call, ApprovalID: protocol.DeriveApprovalID(turnID, n+1), Decision: decision, By: by},
			&protocol.ToolCompleted{PartID: part, ToolID: call, State: state})
	}
	return append(events, &protocol.TurnFinished{Status: protocol.TurnCompleted, MessageID: protocol.NewMessageID()})
}

func TestDecisionsAreComparedWithTheLog(t *testing.T) {
	told := func(n int, d protocol.Decision, outcome verify.Outcome, sequence int64) verify.Decision {
		return verify.Decision{Approval: protocol.DeriveApprovalID(turnID, n).String(), Decision: d, Outcome: outcome, Sequence: sequence}
	}
	once, reject := told(1, protocol.ApproveOnce, verify.Acknowledged, 8), told(2, protocol.RejectCall, verify.Acknowledged, 10)
	both := []verify.Decision{once, reject}
	insert := func(at int, more ...protocol.Payload) []protocol.Payload {
		return slices.Insert(approvedTurn(), at, more...)
	}
	call := protocol.DeriveToolID(turnID, 1)
	for name, c := range map[string]struct {
		kind      verify.Kind
		events    []protocol.Payload
		decisions []verify.Decision
	}{
		"two decisions":                   {"", approvedTurn(), append(both, once, told(1, protocol.RejectCall, verify.Closed, 0), told(3, protocol.ApproveOnce, verify.Closed, 0), told(2, protocol.ApproveOnce, verify.Refused, 0))},
		"a decision of unknown outcome":   {"", approvedTurn(), []verify.Decision{told(1, protocol.ApproveOnce, verify.Unknown, 0), reject}},
		"a decision that is gone":         {verify.Lost, approvedTurn(), append(both, told(4, protocol.ApproveOnce, verify.Acknowledged, 8))},
		"a decision that became another":  {verify.Lost, approvedTurn(), append(both, told(2, protocol.ApproveOnce, verify.Acknowledged, 10))},
		"a decision that came too late":   {verify.Lost, approvedTurn(), append(both, told(3, protocol.ApproveOnce, verify.Acknowledged, 12))},
		"a decision under another event":  {verify.Lost, approvedTurn(), []verify.Decision{told(1, protocol.ApproveOnce, verify.Acknowledged, 9), reject}},
		"a decision that was refused":     {verify.Untruthful, approvedTurn(), []verify.Decision{told(1, protocol.ApproveOnce, verify.Refused, 0), reject}},
		"a decision of nobody":            {verify.Untruthful, approvedTurn(), []verify.Decision{told(1, protocol.RejectCall, verify.Unknown, 0), reject}},
		"a repeat that was refused":       {verify.NotIdempotent, approvedTurn(), append(both, told(1, protocol.ApproveOnce, verify.Closed, 0))},
		"an approval without an end":      {verify.Order, slices.Delete(approvedTurn(), 11, 12), both},
		"an approval that is asked twice": {verify.Doubled, insert(3, approvedTurn()[2]), []verify.Decision{told(1, protocol.ApproveOnce, verify.Acknowledged, 9), told(2, protocol.RejectCall, verify.Acknowledged, 11)}},
		"an approval that is ended twice": {verify.Doubled, insert(9, approvedTurn()[7]), []verify.Decision{told(1, protocol.ApproveOnce, verify.Acknowledged, 10), told(2, protocol.RejectCall, verify.Acknowledged, 11)}},
		"a decision on nothing":           {verify.Order, insert(13, &protocol.ApprovalResolved{PartID: part, ToolID: call, ApprovalID: protocol.DeriveApprovalID(turnID, 9)}), both},
		"a decision that was not offered": {verify.Order, slices.Replace(approvedTurn(), 7, 8, protocol.Payload(&protocol.ApprovalResolved{PartID: part, ToolID: call, ApprovalID: protocol.DeriveApprovalID(turnID, 1), Decision: protocol.ApproveForConversation, By: protocol.DecidedByUser})), []verify.Decision{told(1, protocol.ApproveForConversation, verify.Acknowledged, 8), reject}},
		"a call that runs too early":      {verify.Order, insert(7, &protocol.ToolStateChanged{PartID: part, ToolID: call, State: protocol.ToolRunning}), []verify.Decision{told(1, protocol.ApproveOnce, verify.Acknowledged, 9), told(2, protocol.RejectCall, verify.Acknowledged, 11)}},
		"a rejected call that runs":       {verify.Order, insert(10, &protocol.ToolStateChanged{PartID: part, ToolID: protocol.DeriveToolID(turnID, 2), State: protocol.ToolRunning}), both},
		"a call that ends without a user": {verify.Order, insert(12, &protocol.ToolCompleted{PartID: part, ToolID: protocol.DeriveToolID(turnID, 3), State: protocol.ToolSucceeded}), both},
	} {
		t.Run(name, func(t *testing.T) { want(t, read(t, c.events).CheckApprovals(c.decisions), c.kind) })
	}
}

func TestAMessageMustBeWhatItsEventsProduce(t *testing.T) {
	turn := read(t, legal())
	want(t, turn.CheckMessage("a snapshot", 3, verify.PartsJSON(read(t, legal()[:3]).Parts)), "")
	want(t, turn.CheckMessage("a snapshot", 3, verify.PartsJSON(turn.Parts)), verify.WrongMessage)
	want(t, turn.CheckMessage("a page", 0, "[]"), verify.WrongMessage)
	want(t, turn.CheckMessage("a page", 99, "[]"), verify.NotDurable)
}

func TestAWitnessComparesReadersAndTheLog(t *testing.T) {
	events, log := verify.Events(framesOf(t, legal())), turnID.String()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	w := verify.NewWitness()
	for range 2 {
		for i, e := range events {
			if err := w.Saw(log, e.Sequence, e.Data, noon.Add(time.Duration(i)*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want(t, w.CheckAll(log, events), "")
	want(t, w.CheckAll(log, append(slices.Clone(events), verify.Event{})), verify.Lost)
	want(t, w.CheckAll(log, events[:5]), verify.NotDurable)
	if compared, found := w.CheckLog(log, events[:5], noon.Add(5*time.Minute)); compared != 5 || len(found) > 0 {
		t.Errorf("%d events were compared: %v", compared, found)
	}
	if w.Reads() != 2*len(events) || w.Count(log) != len(events) || w.CountSince(noon) != len(events)-1 || !slices.Equal(w.Logs(), []string{log}) {
		t.Errorf("%d reads, %d events, %d later, of %v", w.Reads(), w.Count(log), w.CountSince(noon), w.Logs())
	}
	changed := slices.Clone(events)
	changed[2].Data += " "
	want(t, w.CheckAll(log, changed), verify.Changed)
	want(t, w.Findings(), "")
	if w.Saw(log, 3, changed[2].Data, noon) == nil {
		t.Error("a second reader got other bytes, and that was not found")
	}
	w.Forget()
	want(t, w.Findings(), verify.Changed)
	if w.Count(log) != 0 {
		t.Errorf("%d events are left", w.Count(log))
	}
}

func TestEachViolationInTheRowsOfALogIsFound(t *testing.T) {
	rows := func() (chunks []verify.Chunk, whole []byte) {
		whole = framesOf(t, legal())
		for i, line := range slices.Collect(protocol.FrameLines(whole)) {
			chunks = append(chunks, verify.Chunk{First: int64(i) + 1, Last: int64(i) + 1, Epoch: 1, Frames: append(slices.Clone(line), '\n')})
		}
		return chunks, whole
	}
	for name, c := range map[string]struct {
		kind   verify.Kind
		change func([]verify.Chunk) []verify.Chunk
	}{
		"legal rows":                   {"", func(c []verify.Chunk) []verify.Chunk { c[11].Epoch = 2; return c }},
		"a row that is missing":        {verify.Gaps, func(c []verify.Chunk) []verify.Chunk { return slices.Delete(c, 3, 4) }},
		"a row twice":                  {verify.Gaps, func(c []verify.Chunk) []verify.Chunk { return slices.Insert(c, 3, c[3]) }},
		"a row with a wrong range":     {verify.Gaps, func(c []verify.Chunk) []verify.Chunk { c[11].Last = 13; return c }},
		"a row without events":         {verify.Gaps, func(c []verify.Chunk) []verify.Chunk { c[11].Frames = nil; return c }},
		"a row of an owner before":     {verify.Order, func(c []verify.Chunk) []verify.Chunk { c[3].Epoch = 2; return c }},
		"a row with an event of later": {verify.Gaps, func(c []verify.Chunk) []verify.Chunk { c[3].Frames = c[4].Frames; return c }},
	} {
		t.Run(name, func(t *testing.T) {
			chunks, _ := rows()
			_, found := verify.ReadChunks("turn", c.change(chunks))
			want(t, found, c.kind)
		})
	}
	chunks, whole := rows()
	want(t, verify.CheckCopy("turn", chunks, 12, whole), "")
	want(t, verify.CheckCopy("turn", chunks, 11, whole), verify.Changed)
	want(t, verify.CheckCopy("turn", chunks, 12, whole[1:]), verify.Changed)
}

func TestAcknowledgedWritesAreComparedWithTheStore(t *testing.T) {
	acked := verify.Write{What: "a", ID: "1", Outcome: verify.Acknowledged}
	for name, c := range map[string]struct {
		kind   verify.Kind
		writes []verify.Write
		stored []string
	}{
		"acknowledged, stored":           {"", []verify.Write{acked, acked}, []string{"1"}},
		"acknowledged, without its ID":   {"", []verify.Write{{What: "a", Outcome: verify.Acknowledged}}, []string{"1"}},
		"acknowledged, lost":             {verify.Lost, []verify.Write{acked}, nil},
		"acknowledged, stored otherwise": {verify.Lost, []verify.Write{acked}, []string{"2"}},
		"acknowledged, stored twice":     {verify.Doubled, []verify.Write{acked}, []string{"1", "2"}},
		"two responses":                  {verify.NotIdempotent, []verify.Write{acked, {What: "a", ID: "2", Outcome: verify.Acknowledged}}, []string{"1"}},
		"unknown, stored":                {"", []verify.Write{{What: "a"}}, []string{"1"}},
		"unknown, not stored":            {"", []verify.Write{{What: "a"}}, nil},
		"unknown, stored twice":          {verify.Doubled, []verify.Write{{What: "a"}}, []string{"1", "2"}},
		"refused, not stored":            {"", []verify.Write{{What: "a", Outcome: verify.Refused}}, nil},
		"refused, stored":                {verify.Untruthful, []verify.Write{{What: "a", Outcome: verify.Refused}}, []string{"1"}},
		"refused, then unknown, stored":  {"", []verify.Write{{What: "a", Outcome: verify.Refused}, {What: "a"}}, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, verify.CheckWrites(c.writes, map[string][]string{"a": c.stored, "b": {"x", "y"}}), c.kind)
		})
	}
}

func TestEachViolationInTheLogOfAnUploadIsFound(t *testing.T) {
	id, file := protocol.NewUploadID(), protocol.DeriveFileID(protocol.NewUploadID())
	legal := func() []protocol.Payload {
		return []protocol.Payload{
			&protocol.UploadStarted{Filename: "a", Size: 10, State: protocol.UploadPending},
			&protocol.UploadStateChanged{From: protocol.UploadPending, State: protocol.UploadReceiving},
			&protocol.UploadProgress{ReceivedBytes: 4, Size: 10},
			&protocol.UploadProgress{ReceivedBytes: 10, Size: 10},
			&protocol.UploadStateChanged{From: protocol.UploadReceiving, State: protocol.UploadScanning},
			&protocol.UploadStateChanged{From: protocol.UploadScanning, State: protocol.UploadReady},
			&protocol.UploadFinished{State: protocol.UploadReady, FileID: &file, LastSequence: 7},
		}
	}
	read := func(events []protocol.Payload) *verify.Upload {
		frames, err := protocol.AppendUploadEvents(nil, id, 1, time.Unix(0, 0), events)
		if err != nil {
			t.Fatal(err)
		}
		return verify.ReadUpload(id.String(), verify.Events(frames))
	}
	for name, c := range map[string]struct {
		kind   verify.Kind
		events []protocol.Payload
	}{
		"a legal log":                 {"", legal()},
		"a log that has not ended":    {"", legal()[:3]},
		"an end without its state":    {"", append(slices.Delete(legal(), 5, 7), &protocol.UploadFinished{State: protocol.UploadReady, FileID: &file, LastSequence: 6})},
		"no start":                    {verify.NotWhole, legal()[1:]},
		"two ends":                    {verify.Ends, append(legal(), legal()[6])},
		"an end with a wrong number":  {verify.Ends, slices.Delete(legal(), 3, 4)},
		"a state that does not fit":   {verify.Order, slices.Delete(legal(), 4, 5)},
		"a transition that is none":   {verify.Order, slices.Insert(legal(), 1, protocol.Payload(&protocol.UploadStateChanged{From: protocol.UploadPending, State: protocol.UploadReady}))},
		"less progress":               {verify.Order, slices.Insert(legal(), 4, legal()[2])},
		"more progress than its size": {verify.Order, slices.Insert(legal(), 4, protocol.Payload(&protocol.UploadProgress{ReceivedBytes: 11}))},
		"an end that cannot follow":   {verify.Order, append(legal()[:2:2], &protocol.UploadFinished{State: protocol.UploadExpired, LastSequence: 3})},
		"a ready end without a file":  {verify.NotWhole, append(legal()[:6:6], &protocol.UploadFinished{State: protocol.UploadReady, LastSequence: 7})},
	} {
		t.Run(name, func(t *testing.T) { want(t, read(c.events).Findings, c.kind) })
	}
	shown := protocol.Upload{State: protocol.UploadReady, FileID: &file, LastSequence: 7}
	want(t, read(legal()).CheckResource(&shown), "")
	want(t, read(legal()[:5]).CheckResource(&shown), verify.Lost)
	shown.LastSequence = 8
	want(t, read(legal()).CheckResource(&shown), verify.WrongMessage)
	gap := verify.ReadUpload(id.String(), slices.Delete(slices.Clone(read(legal()).Events), 2, 3))
	want(t, gap.Findings, verify.Gaps)
}

func TestEachViolationInTheLogOfAResearchTaskIsFound(t *testing.T) {
	id, artifact, message, input := protocol.NewTaskID(), protocol.NewArtifactID(), protocol.NewMessageID(), protocol.NewSteeringID()
	steered := func(outcome protocol.ResearchSteeringOutcome) protocol.Payload {
		return &protocol.ResearchSteered{SteeringID: input, Outcome: outcome, Kind: protocol.ResearchInput}
	}
	legal := func() []protocol.Payload {
		return []protocol.Payload{
			&protocol.ResearchStarted{ConversationID: protocol.NewConversationID(), Question: "q"},
			&protocol.ResearchStateChanged{State: protocol.ResearchRunning},
			steered(protocol.ResearchAccepted),
			steered(protocol.ResearchApplied),
			&protocol.ResearchStateChanged{State: protocol.ResearchCompleted},
			&protocol.ResearchFinished{State: protocol.ResearchCompleted, ArtifactID: &artifact, MessageID: &message, LastSequence: 6},
		}
	}
	read := func(events []protocol.Payload) *verify.Research {
		frames, err := protocol.AppendResearchEvents(nil, id, 1, time.Unix(0, 0), events)
		if err != nil {
			t.Fatal(err)
		}
		return verify.ReadResearch(id.String(), verify.Events(frames))
	}
	for name, c := range map[string]struct {
		kind   verify.Kind
		events []protocol.Payload
	}{
		"a legal log":                {"", legal()},
		"a log that has not ended":   {"", legal()[:3]},
		"no start":                   {verify.NotWhole, legal()[1:]},
		"two ends":                   {verify.Ends, append(legal(), legal()[5])},
		"an end with a wrong number": {verify.Ends, append(legal()[:5:5], legal()[4], legal()[5])},
		"a transition that is none":  {verify.Order, slices.Delete(legal(), 1, 2)},
		"an end that cannot follow":  {verify.Order, append(slices.Delete(legal(), 4, 6), &protocol.ResearchFinished{State: protocol.ResearchFailed, LastSequence: 5})},
		"a report without a message": {verify.NotWhole, append(legal()[:5:5], &protocol.ResearchFinished{State: protocol.ResearchCompleted, ArtifactID: &artifact, LastSequence: 6})},
		"an input with two outcomes": {verify.Order, slices.Insert(legal(), 4, steered(protocol.ResearchReturned))},
		"an input without one":       {verify.Order, append(slices.Delete(legal(), 3, 6), legal()[4], &protocol.ResearchFinished{State: protocol.ResearchCompleted, ArtifactID: &artifact, MessageID: &message, LastSequence: 5})},
	} {
		t.Run(name, func(t *testing.T) { want(t, read(c.events).Findings, c.kind) })
	}
	shown := protocol.ResearchTask{State: protocol.ResearchCompleted, ArtifactID: &artifact, LastSequence: 6}
	want(t, read(legal()).CheckResource(&shown, false), "")
	want(t, read(legal()).CheckResource(&shown, true), verify.Lost)
	want(t, read(legal()[:4]).CheckResource(&shown, false), verify.Lost)
	shown.LastSequence = 7
	want(t, read(legal()).CheckResource(&shown, false), verify.WrongMessage)
	want(t, verify.ReadResearch(protocol.NewTaskID().String(), read(legal()[:1]).Events).Findings, verify.Malformed)
	want(t, verify.ReadResearch(id.String(), slices.Delete(slices.Clone(read(legal()).Events), 2, 4)).Findings, verify.Gaps)
}

func TestEachViolationInTheAccountFeedIsFound(t *testing.T) {
	item := func(version int) string {
		return fmt.Sprintf(`{"type":"draft.changed","id":"conv_1","version":%d,"at":"2026-01-01T00:00:00Z"}`, version)
	}
	reset := `{"type":"feed.reset","at":"2026-01-01T00:00:00Z"}`
	for name, c := range map[string]struct {
		kind  verify.Kind
		items [][3]string
	}{
		"items in their order":       {"", [][3]string{{"a", "draft.changed", item(1)}, {"b", "draft.changed", item(2)}, {"c", "draft.changed", item(2)}}},
		"an old item after a reset":  {"", [][3]string{{"a", "draft.changed", item(2)}, {"b", "feed.reset", reset}, {"c", "draft.changed", item(1)}}},
		"an item again":              {verify.Repeated, [][3]string{{"a", "draft.changed", item(1)}, {"a", "draft.changed", item(1)}}},
		"an item of an old version":  {verify.Order, [][3]string{{"a", "draft.changed", item(2)}, {"b", "draft.changed", item(1)}}},
		"an item without a cursor":   {verify.Malformed, [][3]string{{"", "draft.changed", item(1)}}},
		"an item with another event": {verify.Malformed, [][3]string{{"a", "draft.deleted", item(1)}}},
		"an item that is no JSON":    {verify.Malformed, [][3]string{{"a", "draft.changed", "{"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var feed verify.Feed
			var found verify.Findings
			for _, one := range c.items {
				if _, err := feed.Next(one[0], one[1], one[2]); err != nil {
					found = append(found, err.(verify.Finding))
				}
			}
			want(t, found, c.kind)
			if last := c.items[len(c.items)-1]; feed.Cursor != last[0] && c.kind == "" {
				t.Errorf("the cursor is %q", feed.Cursor)
			}
		})
	}
}

func TestFindingsAreOneError(t *testing.T) {
	if err := (verify.Findings{}).Err(); err != nil {
		t.Error(err)
	}
	found := read(t, append(legal()[1:], &protocol.TurnStateChanged{})).Findings
	if err := found.Err(); err == nil || !strings.Contains(err.Error(), string(verify.NotWhole)) || !strings.Contains(err.Error(), string(verify.Ends)) {
		t.Errorf("%v as an error: %v", found, err)
	}
}
