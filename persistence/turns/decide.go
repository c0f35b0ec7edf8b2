package turns

import (
	"time"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// What a start does. Everything in this file is pure: it runs no statement. A start by itself, a start in a group and a start
// from a queue read the facts with their own statements, and decide here.

// startFacts holds what a start depends on, read under the locks of its conversation and its account.
type startFacts struct {
	liveTurns      int
	ownerAlive     bool              // the node accepts turns
	defaultProfile *protocol.Profile // of the account
	granted        []protocol.MemorySource
	instructions   int64 // the current version of those of the account
	project        projectFacts
	conversation   startConversation
	sibling        *siblingPoint // the message that the start names in Branch; nil: there is none
}

// projectFacts holds what a start depends on in the project of its conversation. The zero value is no project.
type projectFacts struct {
	id             *protocol.ProjectID
	state          *protocol.ProjectState
	defaultProfile *protocol.Profile
	instructions   int64 // their current version
	tools          protocol.ToolSwitches
	approvals      string // their policy
}

// startConversation holds what a start reads under the lock of the conversation. The zero value is a new conversation.
type startConversation struct {
	found        bool
	branch       protocol.BranchID
	live         *protocol.TurnID
	profile      *protocol.Profile
	head         *protocol.MessageID
	headDepth    int
	headRole     *string
	headParent   *protocol.MessageID
	headParts    []protocol.Part
	headFiles    []protocol.FileID
	headProfile  *protocol.Profile // of an answer
	queueVersion int64
	project      *protocol.ProjectID
	temporary    bool
}

// siblingPoint is the message of which a start writes another version.
type siblingPoint struct {
	conversations.BranchPoint
	grandparent *protocol.MessageID
	parentParts []protocol.Part
	parentFiles []protocol.FileID
	previous    *protocol.Profile // of the answer before, or of the answer that is regenerated
}

// takesTurns reports whether turns may start: there is no project, or it is active.
func (p *projectFacts) takesTurns() bool { return p.state == nil || *p.state == protocol.ProjectActive }

// turnPlan is a turn that is about to start: everything is decided, nothing is stored.
type turnPlan struct {
	account      protocol.AccountID
	conversation protocol.ConversationID // of a new one: set by begin
	turn         protocol.TurnID         // set by the caller of decide
	at           time.Time
	requested    protocol.Profile
	input        string
	attachments  []protocol.FileID
	tools        *protocol.ToolChoice

	branch protocol.BranchID   // of a new one: set by begin
	parent *protocol.MessageID // the message before the user's
	depth  int                 // of parent; 0: none
	// previous is the profile of the answer before, or of the answer that is regenerated; nil: there is none.
	previous *protocol.Profile
	// existingMessage is an existing user message, at depth: only an assistant message is added.
	existingMessage *protocol.MessageID
	// forkedFrom is the branch from which a new branch starts; nil: the turn is on an existing branch.
	forkedFrom      *protocol.BranchID
	newConversation bool
	temporary       bool
	granted         []protocol.MemorySource // none in a temporary conversation
	instructions    int64                   // the version of those of the account
	followUp        *protocol.FollowUpID
	project         *projectFacts
	session         *protocol.SessionID // of the request; nil: the service starts the turn
}

// answerExisting plans a turn that answers an existing message.
func (p *turnPlan) answerExisting(message protocol.MessageID, parent *protocol.MessageID, parts []protocol.Part, attachments []protocol.FileID) {
	p.existingMessage, p.parent, p.input, p.attachments = &message, parent, userText(parts), attachments
}

// action is what a start does if it is not refused.
type action int

const (
	startsTurn   action = iota
	queuesInput         // adds the input to the queue behind the live turn
	steersTurn          // adds the input to the live turn
	showsProject        // is refused, with the project that takes no turns
)

// decide returns what a start does, and the plan if it starts a turn. maxLive is the limit of live turns of the account.
func decide(start *turnlog.Start, f *startFacts, maxLive int) (action, *turnPlan, error) {
	c := &f.conversation
	if err := f.checkConversation(start); err != nil {
		return 0, nil, err
	}
	switch {
	case !f.project.takesTurns():
		return showsProject, nil, nil
	case c.live != nil:
		does, err := decideBusy(start, f)
		return does, nil, err
	}
	if err := c.checkHead(start.Expected); err != nil {
		return 0, nil, err
	}
	if err := f.checkLimits(maxLive); err != nil {
		return 0, nil, err
	}
	plan, err := choose(start, f)
	return startsTurn, plan, err
}

// checkConversation returns an error unless the conversation and the project that the start names exist and go together.
func (f *startFacts) checkConversation(start *turnlog.Start) error {
	c := &f.conversation
	switch {
	case start.ConversationID != nil && !c.found, start.ConversationID == nil && start.ProjectID != nil && f.project.id == nil:
		return pg.NotFound()
	case start.ConversationID == nil:
		return nil // the handler has checked what it will be
	case start.ProjectID != nil && (c.project == nil || *c.project != *start.ProjectID):
		return protocol.Invalid("body.project_id", "is not the project of the conversation")
	}
	return protocol.CheckTemporary(start.Temporary, c.project, &c.temporary)
}

// decideBusy returns what the request specifies for the case that a turn is live.
func decideBusy(start *turnlog.Start, f *startFacts) (action, error) {
	refused := conversations.TurnInProgress(*f.conversation.live)
	if start.IfBusy != protocol.BusyQueue && start.IfBusy != protocol.BusySteer {
		return 0, refused
	}
	if err := f.conversation.checkHead(start.Expected); err != nil {
		return 0, err
	}
	switch {
	case start.Branch != nil: // neither a follow-up nor a steering input can start a sibling
		if err := (&turnPlan{}).chooseSibling(start, f.sibling); err != nil {
			return 0, err
		}
		return 0, refused
	case isEmpty(start):
		return 0, noInput()
	case start.IfBusy == protocol.BusyQueue:
		return queuesInput, nil
	}
	if err := protocol.CheckSteering(start.Input, len(start.Attachments)); err != nil {
		return 0, err
	}
	return steersTurn, nil
}

// checkHead returns a conflict if the head is not the one that the client expects.
func (c *startConversation) checkHead(expected *turnlog.ExpectedHead) error {
	if expected == nil || c.head == nil && expected.ID == nil || c.head != nil && expected.ID != nil && *c.head == *expected.ID {
		return nil
	}
	return protocol.Conflict(protocol.CodeHeadMoved, map[string]*protocol.MessageID{"head_message_id": c.head},
		"This conversation has changed since you loaded it.")
}

// choose decides on which branch the turn is, after which message, which message it answers, and with which profile: the
// requested one, else the conversation's, else the project's, else the account's, else auto.
func choose(start *turnlog.Start, f *startFacts) (*turnPlan, error) {
	c := &f.conversation
	p := &turnPlan{
		account: start.AccountID, at: protocol.Millis(start.At), input: start.Input, attachments: start.Attachments, tools: start.Tools,
		requested: firstProfile(&start.Profile, c.profile, f.project.defaultProfile, f.defaultProfile),
		branch:    c.branch, parent: c.head, depth: c.headDepth, previous: c.headProfile,
		newConversation: start.ConversationID == nil, temporary: start.Temporary, instructions: f.instructions, project: &f.project, session: start.SessionID,
	}
	if !p.newConversation {
		p.conversation = *start.ConversationID
	}
	if len(f.granted) > 0 && !start.Temporary && !c.temporary {
		p.granted = f.granted
	}
	switch {
	case start.Branch != nil:
		return p, p.chooseSibling(start, f.sibling)
	case !isEmpty(start):
		return p, nil
	case c.headRole == nil || *c.headRole != protocol.RoleUser:
		return nil, noInput()
	}
	p.answerExisting(*c.head, c.headParent, c.headParts, c.headFiles)
	return p, nil
}

func firstProfile(candidates ...*protocol.Profile) protocol.Profile {
	for _, p := range candidates {
		if p != nil && p.Valid() {
			return *p
		}
	}
	return protocol.ProfileAuto
}

func isEmpty(start *turnlog.Start) bool { return start.Input == "" && len(start.Attachments) == 0 }

func noInput() error { return protocol.Invalid("body.input", "must contain a text or a file") }

// chooseSibling plans a new branch that leaves the present one before the named message.
func (p *turnPlan) chooseSibling(start *turnlog.Start, point *siblingPoint) error {
	switch {
	case start.ConversationID == nil:
		return protocol.Invalid("body.branch", "needs the conversation of its message")
	case point == nil:
		return pg.NotFound()
	}
	if err := point.CheckMode(start.Branch.Mode, "body.branch"); err != nil {
		return err
	}
	p.forkedFrom, p.parent, p.depth, p.previous = &point.BranchID, point.ParentMessageID, point.Depth-1, point.previous
	if start.Branch.Mode != protocol.BranchRegenerate {
		if isEmpty(start) {
			return noInput()
		}
		return nil
	}
	if !isEmpty(start) {
		return protocol.Invalid("body.input", "must be empty to regenerate: the message that is answered stays the same")
	}
	p.answerExisting(*point.ParentMessageID, point.grandparent, point.parentParts, point.parentFiles)
	return nil
}
