package protocol

// How a branch comes to be.
const (
	BranchEdit       = "edit"       // another version of a message of the user
	BranchRegenerate = "regenerate" // another answer to the same message
	BranchFork       = "fork"       // a new conversation with the path so far
)
