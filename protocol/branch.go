package protocol

// The ways to create a branch.
const (
	BranchEdit       = "edit"       // another version of a user message
	BranchRegenerate = "regenerate" // another answer to the same message
	BranchFork       = "fork"       // a new conversation with a copy of the path so far
)
