// Package transcriptions handles the requests that turn speech into text.
//
// A recording is passed on to the server of the operator while it is received. It is neither stored nor logged.
package transcriptions

import (
	"context"
	"io"
	"mime"
	stdhttp "net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/http/transfer"
	"turnstone/protocol"
)

// MaxBytes limits a recording: half an hour of speech in the formats of browsers, and what the API of OpenAI accepts.
const MaxBytes = 25 << 20

// extensions maps the accepted media types to the extensions by which servers recognize the format.
var extensions = map[string]string{
	"audio/webm": "webm", "audio/ogg": "ogg", "audio/mp4": "mp4", "audio/x-m4a": "m4a", "audio/mpeg": "mp3", "audio/wav": "wav", "audio/x-wav": "wav", "audio/flac": "flac",
}

// Transcriber turns speech into text; see package providers/transcription.
type Transcriber interface {
	Transcribe(ctx context.Context, audio io.Reader, size int64, extension, language string) (string, error)
}

// Handlers handle the requests for transcriptions.
type Handlers struct {
	Transcriber Transcriber // nil: no server is configured
	Sessions    exchange.Sessions
}

func document(api huma.API, op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for media := range extensions {
		content[media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The recording.", Content: content}
	op.Metadata["raw"] = true
	route.JSONResponse[protocol.Transcription](api, op, stdhttp.StatusOK, "The text.")
}

type createInput struct {
	Language string `query:"language" pattern:"^[a-z]{2,3}$" doc:"The language of the speaker (ISO 639). Absent: it is recognized."`
}

func (h *Handlers) create(w stdhttp.ResponseWriter, r *stdhttp.Request, in *createInput) (err error) {
	if h.Transcriber == nil {
		return protocol.Errorf(protocol.CodeTranscriptionNotConfigured, "This service does not turn speech into text. Ask the administrator for it.")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	extension, known := extensions[media]
	if err != nil || !known {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The Content-Type must be that of a recording, for example audio/webm or audio/mp4.")
	}
	if err := transfer.CheckUncompressed(r); err != nil {
		return err
	}
	if r.ContentLength > MaxBytes {
		return errTooLarge()
	}
	ctx, body, end := transfer.Receive(w, r, h.Sessions)
	defer end(&err)
	text, err := h.Transcriber.Transcribe(ctx, &recording{from: body}, r.ContentLength, extension, in.Language)
	if err != nil {
		return err
	}
	return response.SendJSON(w, stdhttp.StatusOK, protocol.Transcription{Text: text})
}

// recording is the body of a request. It has an error if it is empty or too large.
type recording struct {
	from io.Reader
	read int64
}

func (r *recording) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.read += int64(n)
	switch {
	case r.read > MaxBytes:
		return 0, errTooLarge()
	case err == io.EOF && r.read == 0:
		return 0, protocol.Errorf(protocol.CodeInvalidBody, "The recording is empty.")
	case err != nil && err != io.EOF:
		return n, &protocol.Error{Code: protocol.CodeInvalidBody, Detail: "The recording ended early.", Err: err}
	}
	return n, err
}

func errTooLarge() error {
	return protocol.Errorf(protocol.CodeTooLarge, "A recording can have at most %s MiB.", strconv.Itoa(MaxBytes>>20))
}
