package resource

import (
	"strconv"
	"strings"

	"turnstone/http/response"
	"turnstone/protocol"
)

// IfMatch is embedded by inputs of mutations.
type IfMatch struct {
	IfMatch string `header:"If-Match" doc:"The version that the change is based on, as in the ETag of the resource, for example \"v3\". A weak ETag (W/\"v3\") never matches (RFC 9110): 422. * matches every version."`
}

// RequiredVersion is Version for a route that requires a version: it returns protocol.AnyVersion for *.
func (m IfMatch) RequiredVersion(body *int64) (*int64, error) {
	if m.IfMatch == "*" && body == nil {
		return new(protocol.AnyVersion), nil
	}
	return m.Version(body)
}

// Version returns the version that a mutation is based on, from If-Match or from the body; nil if neither has one, or if
// If-Match is *, which matches every version.
func (m IfMatch) Version(body *int64) (*int64, error) {
	if body != nil && *body < 0 {
		return nil, protocol.Invalid("body.version", "must not be negative")
	}
	if m.IfMatch == "" || m.IfMatch == "*" {
		return body, nil
	}
	digits, ok := strings.CutPrefix(m.IfMatch, `"v`)
	number, err := strconv.ParseInt(strings.TrimSuffix(digits, `"`), 10, 64)
	if !ok || err != nil || response.ETagOf(number) != m.IfMatch {
		return nil, protocol.Invalid("header.If-Match", `must be a strong ETag, for example "v3"`)
	}
	if body != nil && *body != number {
		return nil, protocol.Invalid("body.version", "differs from If-Match")
	}
	return &number, nil
}
