package turns

import (
	"strings"
	"testing"

	"turnstone/persistence/conversations"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// TestEveryRuleOfAStart changes one request or one fact at a time. Without the change, a turn starts after the head of a
// conversation.
func TestEveryRuleOfAStart(t *testing.T) {
	const maxLive = 3
	live, user, other := protocol.NewTurnID(), protocol.RoleUser, protocol.NewMessageID()
	coding, deep, archived := protocol.ProfileCoding, protocol.ProfileDeepReasoning, protocol.ProjectArchived
	busy := func(ifBusy string, change func(*turnlog.Start, *startFacts)) func(*turnlog.Start, *startFacts) {
		return func(s *turnlog.Start, f *startFacts) {
			s.IfBusy, f.conversation.live = ifBusy, &live
			if change != nil {
				change(s, f)
			}
		}
	}
	empty := func(s *turnlog.Start, _ *startFacts) { s.Input = "" }
	branch := func(mode, role, input string, found bool) func(*turnlog.Start, *startFacts) {
		return func(s *turnlog.Start, f *startFacts) {
			s.Input, s.Branch = input, &protocol.BranchRequest{Mode: mode, MessageID: other}
			if found {
				f.sibling = &siblingPoint{BranchPoint: conversations.BranchPoint{BranchID: protocol.NewBranchID(), Depth: 2, Role: role, ParentMessageID: &other}}
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*turnlog.Start, *startFacts)
		does   action
		code   protocol.Code        // of the refusal; empty: none
		check  func(*turnPlan) bool // of a turn that starts; nil: nothing more
	}{
		"nothing changed": {func(*turnlog.Start, *startFacts) {}, startsTurn, "", func(p *turnPlan) bool {
			return p.depth == 4 && p.parent != nil && p.existingMessage == nil && p.forkedFrom == nil && p.requested == protocol.ProfileAuto
		}},
		"the conversation is missing": {func(_ *turnlog.Start, f *startFacts) { f.conversation = startConversation{} }, 0, protocol.CodeNotFound, nil},
		"a new conversation": {func(s *turnlog.Start, f *startFacts) { s.ConversationID, f.conversation = nil, startConversation{} }, startsTurn, "", func(p *turnPlan) bool {
			return p.newConversation && p.parent == nil && p.depth == 0
		}},
		"a new conversation in a missing project": {func(s *turnlog.Start, f *startFacts) {
			id := protocol.NewProjectID()
			s.ConversationID, s.ProjectID, f.conversation = nil, &id, startConversation{}
		}, 0, protocol.CodeNotFound, nil},
		"temporary, of one that is":     {func(s *turnlog.Start, f *startFacts) { s.Temporary, f.conversation.temporary = true, true }, startsTurn, "", nil},
		"temporary, of one that is not": {func(s *turnlog.Start, _ *startFacts) { s.Temporary = true }, 0, protocol.CodeInvalid, nil},
		"the project is archived":       {func(_ *turnlog.Start, f *startFacts) { f.project.state = &archived }, showsProject, "", nil},
		"archived while a turn is live": {busy(protocol.BusyQueue, func(_ *turnlog.Start, f *startFacts) { f.project.state = &archived }), showsProject, "", nil},

		"a turn is live":                  {busy("", nil), 0, protocol.CodeTurnInProgress, nil},
		"live: queue":                     {busy(protocol.BusyQueue, nil), queuesInput, "", nil},
		"live: steer":                     {busy(protocol.BusySteer, nil), steersTurn, "", nil},
		"live: queue nothing":             {busy(protocol.BusyQueue, empty), 0, protocol.CodeInvalid, nil},
		"live: steer with a file":         {busy(protocol.BusySteer, func(s *turnlog.Start, _ *startFacts) { s.Attachments = []protocol.FileID{{}} }), 0, protocol.CodeInvalid, nil},
		"live: steer with a long text":    {busy(protocol.BusySteer, func(s *turnlog.Start, _ *startFacts) { s.Input = strings.Repeat("é", protocol.MaxSteeringRunes+1) }), 0, protocol.CodeInvalid, nil},
		"live: queue behind another head": {busy(protocol.BusyQueue, func(s *turnlog.Start, _ *startFacts) { s.Expected = &turnlog.ExpectedHead{ID: &other} }), 0, protocol.CodeHeadMoved, nil},
		"live: queue an edit":             {busy(protocol.BusyQueue, branch(protocol.BranchEdit, user, "x", true)), 0, protocol.CodeTurnInProgress, nil},
		"live: queue an edit of nothing":  {busy(protocol.BusyQueue, branch(protocol.BranchEdit, user, "x", false)), 0, protocol.CodeNotFound, nil},
		"live: at the limit":              {busy(protocol.BusyQueue, func(_ *turnlog.Start, f *startFacts) { f.liveTurns = maxLive }), queuesInput, "", nil},

		"another head":         {func(s *turnlog.Start, _ *startFacts) { s.Expected = &turnlog.ExpectedHead{ID: &other} }, 0, protocol.CodeHeadMoved, nil},
		"an empty branch":      {func(s *turnlog.Start, _ *startFacts) { s.Expected = &turnlog.ExpectedHead{} }, 0, protocol.CodeHeadMoved, nil},
		"the same head":        {func(s *turnlog.Start, f *startFacts) { s.Expected = &turnlog.ExpectedHead{ID: f.conversation.head} }, startsTurn, "", nil},
		"below the limit":      {func(_ *turnlog.Start, f *startFacts) { f.liveTurns = maxLive - 1 }, startsTurn, "", nil},
		"at the limit":         {func(_ *turnlog.Start, f *startFacts) { f.liveTurns = maxLive }, 0, protocol.CodeTooManyLiveTurns, nil},
		"the node drains":      {func(_ *turnlog.Start, f *startFacts) { f.ownerAlive = false }, 0, protocol.CodeUnavailable, nil},
		"nothing after answer": {empty, 0, protocol.CodeInvalid, nil},
		"nothing after a message of the user": {func(s *turnlog.Start, f *startFacts) { s.Input, f.conversation.headRole = "", &user }, startsTurn, "", func(p *turnPlan) bool {
			return p.existingMessage != nil && p.depth == 4
		}},
		"only a file": {func(s *turnlog.Start, _ *startFacts) { s.Input, s.Attachments = "", []protocol.FileID{{}} }, startsTurn, "", nil},

		"an edit": {branch(protocol.BranchEdit, user, "x", true), startsTurn, "", func(p *turnPlan) bool {
			return p.forkedFrom != nil && p.depth == 1 && *p.parent == other && p.existingMessage == nil
		}},
		"an edit without input": {branch(protocol.BranchEdit, user, "", true), 0, protocol.CodeInvalid, nil},
		"an edit of an answer":  {branch(protocol.BranchEdit, "assistant", "x", true), 0, protocol.CodeInvalid, nil},
		"an edit of nothing":    {branch(protocol.BranchEdit, user, "x", false), 0, protocol.CodeNotFound, nil},
		"an edit without its place": {func(s *turnlog.Start, f *startFacts) {
			branch(protocol.BranchEdit, user, "x", true)(s, f)
			s.ConversationID = nil
		}, 0, protocol.CodeInvalid, nil},
		"another answer": {branch(protocol.BranchRegenerate, "assistant", "", true), startsTurn, "", func(p *turnPlan) bool {
			return p.forkedFrom != nil && *p.existingMessage == other && p.depth == 1
		}},
		"another answer with input": {branch(protocol.BranchRegenerate, "assistant", "x", true), 0, protocol.CodeInvalid, nil},

		"the profile of the account": {func(_ *turnlog.Start, f *startFacts) { f.defaultProfile = &coding }, startsTurn, "", func(p *turnPlan) bool { return p.requested == coding }},
		"of the project first": {func(_ *turnlog.Start, f *startFacts) { f.project.defaultProfile, f.defaultProfile = &deep, &coding }, startsTurn, "", func(p *turnPlan) bool {
			return p.requested == deep
		}},
		"of the conversation first": {func(_ *turnlog.Start, f *startFacts) {
			f.conversation.profile, f.project.defaultProfile = &coding, &deep
		}, startsTurn, "", func(p *turnPlan) bool {
			return p.requested == coding
		}},
		"of the request first": {func(s *turnlog.Start, f *startFacts) { s.Profile, f.conversation.profile = deep, &coding }, startsTurn, "", func(p *turnPlan) bool {
			return p.requested == deep
		}},
	} {
		conversation, head, role := protocol.NewConversationID(), protocol.NewMessageID(), "assistant"
		start := &turnlog.Start{AccountID: protocol.NewAccountID(), ConversationID: &conversation, Input: "hello"}
		facts := &startFacts{ownerAlive: true, conversation: startConversation{found: true, head: &head, headDepth: 4, headRole: &role}}
		test.change(start, facts)
		does, plan, err := decide(start, facts, maxLive)
		switch {
		case test.code != "" || err != nil:
			if err == nil || protocol.CodeOf(err) != test.code {
				t.Errorf("%s: %v, want %q", name, err, test.code)
			}
		case does != test.does || (does == startsTurn) != (plan != nil):
			t.Errorf("%s: it does %d with the plan %+v, want %d", name, does, plan, test.does)
		case test.check != nil && !test.check(plan):
			t.Errorf("%s: the plan is %+v", name, plan)
		}
	}
}
