package response

import (
	"io"
	stdhttp "net/http"

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

// SendJSON sends a response with a JSON body. Other headers must be set before. If the value cannot be encoded, it returns an error and
// sends nothing.
func SendJSON(w stdhttp.ResponseWriter, status int, v any) error {
	return send(w, status, "application/json", v)
}

func send(w stdhttp.ResponseWriter, status int, media string, v any) error {
	text, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may have disconnected
	return nil
}

// JSONFormat accepts names only as they are spelled, and refuses duplicate names and text that is not UTF-8.
// encoding/json would accept "TITLE" for "title", and so bypass the validation of title.
var JSONFormat = huma.Format{
	Marshal:   WriteJSON,
	Unmarshal: func(data []byte, v any) error { return json.Unmarshal(data, v) },
}
