package extract

import (
	"errors"

	"turnstone/protocol"
)

// failed returns the result for a content that cannot be read. An error of a library means that the content is damaged.
func failed(err error) *protocol.Extraction {
	reason := protocol.TextDamaged
	if typed := (*Error)(nil); errors.As(err, &typed) {
		reason = typed.Reason
	}
	return &protocol.Extraction{State: protocol.TextFailed, Reason: reason}
}
