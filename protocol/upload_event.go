package protocol

import "time"

// UploadEvents is the registry of the event types of uploads. The envelope of their events has upload_id where
// that of a turn has turn_id.
var UploadEvents = []EventSpec{
	{"upload.started", "The upload exists and waits for its content.", func() Payload { return new(UploadStarted) }},
	{"upload.state", "The state changed.", func() Payload { return new(UploadStateChanged) }},
	{"upload.progress", "More of the content was received: at most one event a second, and at most 20 for an attempt.", func() Payload { return new(UploadProgress) }},
	{"upload.finished", "The upload has ended. This event is sent exactly once and is always the last one.", func() Payload { return new(UploadFinished) }},
}

// UploadStarted is the first event of every upload.
type UploadStarted struct {
	Filename  string      `json:"filename"`
	MediaType string      `json:"media_type"`
	Size      int64       `json:"size"`
	State     UploadState `json:"state"`
	ExpiresAt time.Time   `json:"expires_at"`
}

// MarshalJSON writes the time in TimeFormat, as TurnSnapshot does.
func (s *UploadStarted) MarshalJSON() ([]byte, error) {
	type plain UploadStarted
	return marshal(struct {
		*plain
		ExpiresAt string `json:"expires_at"`
	}{(*plain)(s), s.ExpiresAt.UTC().Format(TimeFormat)})
}

// UploadStateChanged reports every transition.
type UploadStateChanged struct {
	From    UploadState    `json:"from"`
	State   UploadState    `json:"state"`
	Failure *UploadFailure `json:"failure,omitempty" doc:"Why the attempt was interrupted or the upload ends."`
}

// UploadProgress reports how much of the content was received.
type UploadProgress struct {
	ReceivedBytes int64 `json:"received_bytes"`
	Size          int64 `json:"size"`
}

// UploadFinished is the last event of an upload.
type UploadFinished struct {
	State        UploadState    `json:"state" enum:"ready,rejected,failed,expired,cancelled"`
	FileID       *FileID        `json:"file_id"`
	Failure      *UploadFailure `json:"failure"`
	LastSequence int64          `json:"last_sequence"`
}

// The types of the payloads.
func (*UploadStarted) EventType() EventType      { return "upload.started" }
func (*UploadStateChanged) EventType() EventType { return "upload.state" }
func (*UploadProgress) EventType() EventType     { return "upload.progress" }
func (*UploadFinished) EventType() EventType     { return "upload.finished" }

// UploadEnvelope is the fields with which every event of an upload starts.
type UploadEnvelope struct {
	ProtocolVersion int       `json:"protocol_version" enum:"1"`
	UploadID        UploadID  `json:"upload_id"`
	Sequence        int64     `json:"sequence" minimum:"1" doc:"Contiguous from 1 within the upload."`
	Type            EventType `json:"type"`
	At              time.Time `json:"at" format:"date-time"`
}

// AppendUploadEvents is AppendEvents for the events of an upload.
func AppendUploadEvents(b []byte, upload UploadID, first int64, at time.Time, events []Payload) ([]byte, error) {
	return appendEventsOf(b, "upload_id", upload.String(), first, at, events)
}
