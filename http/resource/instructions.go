package resource

import (
	"fmt"
	"unicode/utf8"

	"turnstone/protocol"
)

// InstructionsBody is the body of a request that replaces instructions.
type InstructionsBody struct {
	Content string `json:"content" doc:"At most 16,000 characters. Empty: no instructions."`
	Version *int64 `json:"version,omitempty" doc:"The version of the instructions that the change is based on; an alternative to If-Match."`
}

// Check returns an error if the instructions are too long.
func (b *InstructionsBody) Check() error {
	if utf8.RuneCountInString(b.Content) > protocol.MaxInstructions {
		return protocol.Invalid("body.content", fmt.Sprintf("must have at most %d characters", protocol.MaxInstructions))
	}
	return nil
}
