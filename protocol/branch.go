package protocol

import "time"

// The ways to create a branch.
const (
	BranchEdit       = "edit"       // another version of a user message
	BranchRegenerate = "regenerate" // another answer to the same message
	BranchFork       = "fork"       // a new conversation with a copy of the path so far
)

// Branch is one path of messages through a conversation. The branches of a conversation form a tree: each starts after a
// message of its parent.
type Branch struct {
	BranchID       BranchID   `json:"branch_id"`
	Name           string     `json:"name"`
	Preview        string     `json:"preview" doc:"The beginning of the text of the branch's first message of its own: the first one that is not on the branch that it was created from. Empty if there is none, or if it has no text yet."`
	ParentBranchID *BranchID  `json:"parent_branch_id" doc:"The branch on which base_message_id was written; null if the branch starts with a first message of its own."`
	BaseMessageID  *MessageID `json:"base_message_id" doc:"The last message that this branch shares with the branch it was created from."`
	BaseDepth      int        `json:"base_depth" doc:"The number of messages up to and including base_message_id; 0 if there is none."`
	HeadMessageID  *MessageID `json:"head_message_id"`
	HeadDepth      int        `json:"head_depth" doc:"The number of messages up to and including head_message_id; 0 if the branch is empty."`
	Active         bool       `json:"active"`
	Version        int64      `json:"version" doc:"Every change of the name raises it."`
	CreatedAt      time.Time  `json:"created_at"`
}

// Address returns the path of the branch below the branches of its conversation.
func (b *Branch) Address() string { return b.BranchID.String() }

// CurrentVersion returns the version of the branch.
func (b *Branch) CurrentVersion() int64 { return b.Version }
