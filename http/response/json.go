package response

import (
	"fmt"
	"io"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"turnstone/protocol"
)

// wireOptions define the JSON of responses: times in UTC with milliseconds, nil slices as [], and omitempty with the
// semantics of encoding/json.
var wireOptions = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(out *jsontext.Encoder, at time.Time) error {
		return out.WriteToken(jsontext.String(at.UTC().Format(protocol.TimeFormat)))
	})),
)

// WriteJSON writes one value and a newline. It returns an error if the value cannot be encoded. It ignores errors of
// writing: the client may have disconnected.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v, wireOptions)
	if err != nil {
		return fmt.Errorf("encoding a response: %w", err)
	}
	_, _ = w.Write(append(text, '\n'))
	return nil
}

// JSONFormat accepts names only as they are spelled, and refuses duplicate names and text that is not UTF-8.
// encoding/json would accept "TITLE" for "title", and so bypass the validation of title.
var JSONFormat = huma.Format{
	Marshal:   WriteJSON,
	Unmarshal: func(data []byte, v any) error { return json.Unmarshal(data, v) },
}
