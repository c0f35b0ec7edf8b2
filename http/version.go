package http

import (
	"strconv"
	"strings"

	"turnstone/protocol"
)

// ETagOf is how a version is told: ETag: "v3".
func ETagOf(version int64) string { return `"v` + strconv.FormatInt(version, 10) + `"` }

// IfMatch is embedded by inputs of mutations.
type IfMatch struct {
	IfMatch string `header:"If-Match" doc:"The version that the change is based on, as the ETag said it: \"v3\"."`
}

// version reads the version that a mutation is based on from If-Match or from the body; nil when neither says one.
func (m IfMatch) version(body *int64) (*int64, error) {
	if m.IfMatch == "" {
		return body, nil
	}
	digits, ok := strings.CutPrefix(strings.TrimPrefix(m.IfMatch, "W/"), `"v`)
	number, err := strconv.ParseInt(strings.TrimSuffix(digits, `"`), 10, 64)
	if !ok || err != nil || ETagOf(number) != strings.TrimPrefix(m.IfMatch, "W/") {
		return nil, protocol.Invalid("header.If-Match", `must be an ETag as "v3"`)
	}
	if body != nil && *body != number {
		return nil, protocol.Invalid("body.version", "differs from If-Match")
	}
	return &number, nil
}
