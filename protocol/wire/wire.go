// Package wire encodes the JSON of responses and of exports. Stored records and the messages between nodes have encodings of
// their own. It sends nothing and decides no status: package response does.
package wire

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"turnstone/protocol"
)

// options define the JSON: times in UTC with milliseconds, nil slices as [], and omitempty with the semantics of
// encoding/json.
var options = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(out *jsontext.Encoder, at time.Time) error {
		return out.WriteToken(jsontext.String(at.UTC().Format(protocol.TimeFormat)))
	})),
)

// Marshal encodes a value.
func Marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v, options)
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return text, nil
}
