package protocol

// Transcription is the text of a recording.
type Transcription struct {
	Text string `json:"text" doc:"What was said. Empty if nothing was understood."`
}
