package protocol

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// FollowUpState is the state of a follow-up.
type FollowUpState string

// The states of a follow-up.
const (
	FollowUpQueued    FollowUpState = "queued"
	FollowUpHeld      FollowUpState = "held"
	FollowUpStarted   FollowUpState = "started" // the follow-up has become a turn
	FollowUpCancelled FollowUpState = "cancelled"
)

// FollowUpStates lists every state: the open states, then the terminal ones.
var FollowUpStates = []FollowUpState{FollowUpQueued, FollowUpHeld, FollowUpStarted, FollowUpCancelled}

// Terminal reports whether the state is final.
func (s FollowUpState) Terminal() bool { return s == FollowUpStarted || s == FollowUpCancelled }

// FollowUpTrigger is a cause of a transition of a follow-up.
type FollowUpTrigger string

// The triggers of a follow-up.
const (
	FollowUpHold    FollowUpTrigger = "hold" // the user holds it, or a turn did not complete
	FollowUpRelease FollowUpTrigger = "release"
	FollowUpCancel  FollowUpTrigger = "cancel"
	FollowUpStart   FollowUpTrigger = "start" // it becomes the next turn
)

// FollowUpTransitions lists every legal transition of a follow-up.
var FollowUpTransitions = []Transition[FollowUpState, FollowUpTrigger]{
	{FollowUpQueued, FollowUpHold, FollowUpHeld},
	{FollowUpQueued, FollowUpStart, FollowUpStarted},
	{FollowUpQueued, FollowUpCancel, FollowUpCancelled},
	{FollowUpHeld, FollowUpRelease, FollowUpQueued},
	{FollowUpHeld, FollowUpCancel, FollowUpCancelled},
}

// TriggerTo returns the trigger by which a user changes a follow-up to a state; ok is false when there is none.
func (s FollowUpState) TriggerTo(to FollowUpState) (trigger FollowUpTrigger, ok bool) {
	for _, t := range FollowUpTransitions {
		if t.From == s && t.To == to && t.Trigger != FollowUpStart {
			return t.Trigger, true
		}
	}
	return "", false
}

// FollowUpChange is what a user changes of a follow-up.
type FollowUpChange struct {
	State       FollowUpState // queued, held or cancelled
	Content     *string       // nil: unchanged
	Attachments *[]FileID     // nil: unchanged
	Version     *int64        // the version that the client saw; nil: the client did not send one
}

// Check returns the conflict between a change and the stored item; nil if the change is allowed.
func (c *FollowUpChange) Check(item *FollowUp) error {
	switch {
	case c.Version == nil:
		return Conflict(CodeVersionRequired, item, "Send the version you are changing in the If-Match header.")
	case !MatchesVersion(*c.Version, item.Version):
		return Conflict(CodeStaleVersion, item, "The queued message has changed since that version.")
	case c.Differs(item) && item.State.Terminal():
		return Conflict(CodeConflict, item, "The queued message was already started or canceled.")
	}
	if _, legal := item.State.TriggerTo(c.State); !legal && c.State != item.State {
		return Conflict(CodeConflict, item, fmt.Sprintf("A queued message cannot change from %s to %s.", item.State, c.State))
	}
	return nil
}

// Differs reports whether a change differs from the stored item.
func (c *FollowUpChange) Differs(item *FollowUp) bool {
	return item.State != c.State || c.Content != nil && *c.Content != item.Content ||
		c.Attachments != nil && !slices.Equal(*c.Attachments, item.Attachments)
}

// CheckFollowUp returns why a follow-up cannot have a text: it is too long, or it has no characters. With files it may be empty.
func CheckFollowUp(content string, files int) error {
	switch {
	case content == "" && files > 0:
		return nil
	case strings.TrimSpace(content) == "":
		return Invalid("body.content", "must contain text")
	case utf8.RuneCountInString(content) > MaxInputRunes:
		return Invalid("body.content", "is too long")
	}
	return nil
}
