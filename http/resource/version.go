package resource

import (
	"strconv"
	"strings"

	"turnstone/http/response"
	"turnstone/protocol"
)

// IfMatch is embedded by inputs of mutations.
type IfMatch struct {
	IfMatch string `header:"If-Match" doc:"The version that the change is based on, as in the ETag of the resource, for example \"v3\"."`
}

// Version returns the version that a mutation is based on, from If-Match or from the body; nil if neither has one.
func (m IfMatch) Version(body *int64) (*int64, error) {
	if m.IfMatch == "" {
		return body, nil
	}
	digits, ok := strings.CutPrefix(strings.TrimPrefix(m.IfMatch, "W/"), `"v`)
	number, err := strconv.ParseInt(strings.TrimSuffix(digits, `"`), 10, 64)
	if !ok || err != nil || response.ETagOf(number) != strings.TrimPrefix(m.IfMatch, "W/") {
		return nil, protocol.Invalid("header.If-Match", `must be an ETag, for example "v3"`)
	}
	if body != nil && *body != number {
		return nil, protocol.Invalid("body.version", "differs from If-Match")
	}
	return &number, nil
}
