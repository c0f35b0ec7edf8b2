package resource

import (
	"strconv"

	"turnstone/protocol"
)

// ResumeInput is embedded by inputs of streams that can be resumed.
type ResumeInput struct {
	LastEventID string `header:"Last-Event-ID" doc:"The sequence of the last event that was received. Takes precedence over after."`
	After       string `query:"after" doc:"The sequence of the last event that was received. 0 or absent: start with the first event."`
}

// Position returns the sequence after which the stream continues.
func (in *ResumeInput) Position() (int64, error) {
	text, field := in.After, "query.after"
	if in.LastEventID != "" {
		text, field = in.LastEventID, "header.Last-Event-ID"
	}
	if text == "" {
		return 0, nil
	}
	cursor, err := strconv.ParseInt(text, 10, 64)
	if err != nil || cursor < 0 || strconv.FormatInt(cursor, 10) != text {
		return 0, protocol.Invalid(field, "must be a sequence: a whole number from 0")
	}
	return cursor, nil
}
