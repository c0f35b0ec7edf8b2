package http

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

// wireOptions is how answers are written: times in UTC with milliseconds, absent lists as [], omitempty as Go's own encoder
// understands it.
var wireOptions = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(out *jsontext.Encoder, at time.Time) error {
		return out.WriteToken(jsontext.String(at.UTC().Format(protocol.TimeFormat)))
	})),
)

// writeJSON writes one value and a newline. A client that is gone is no failure; a value that cannot be encoded is.
func writeJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v, wireOptions)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	_, _ = w.Write(append(text, '\n'))
	return nil
}

// jsonFormat reads names exactly as they are spelled, refuses a name that comes twice and text that is not UTF-8.
// encoding/json would take "TITLE" for "title", past the validation of either.
var jsonFormat = huma.Format{
	Marshal:   writeJSON,
	Unmarshal: func(data []byte, v any) error { return json.Unmarshal(data, v) },
}
