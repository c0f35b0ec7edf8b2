package transcriptions

import (
	"fmt"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of transcriptions.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "transcriptions", Description: "Speech as text."}},
		Routes: []route.Route{
			route.Stream("POST", "/transcriptions", "createTranscription", "Turn speech into text", route.Transcriptions, h.create).WithMaxBody(MaxBytes).
				DescribedAs(fmt.Sprintf("Returns the text of a recording of at most %d MiB. "+
					"The recording is passed on to the server that the operator has configured; this service stores nothing of it. "+
					"Without such a server, the response is 403 `transcription_not_configured`; while it does not answer, 503.", MaxBytes>>20)).
				WithCodes(protocol.CodeTranscriptionNotConfigured, protocol.CodeTooLarge, protocol.CodeUnsupportedMedia, protocol.CodeInvalidBody).
				Documented(document),
		},
	}
}
