package response

import (
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"turnstone/protocol/wire"
)

// WriteJSON writes one value and a newline. It returns an error if the value cannot be encoded. It ignores errors of
// writing: the client may have disconnected.
func WriteJSON(w io.Writer, v any) error {
	text, err := wire.Marshal(v)
	if err != nil {
		return err
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
