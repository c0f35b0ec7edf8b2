package protocol

import "time"

// UploadPurpose is what an uploaded file is for.
type UploadPurpose string

// The purposes.
const (
	UploadForAttachment UploadPurpose = "attachment" // of a message in a conversation
	UploadForProject    UploadPurpose = "project"    // becomes a file of a project
	UploadForLibrary    UploadPurpose = "library"
)

// UploadFailureCode is the reason why an upload was interrupted, or has ended without a file.
type UploadFailureCode string

// The reasons. After an interruption, the upload accepts the content again.
const (
	UploadConnectionLost   UploadFailureCode = "connection_lost"     // interrupted: the body ended early, or the client stopped sending
	UploadSizeMismatch     UploadFailureCode = "size_mismatch"       // interrupted: the body has another size than the upload
	UploadHashMismatch     UploadFailureCode = "hash_mismatch"       // interrupted: the body has another SHA-256 than the upload
	UploadStoreUnavailable UploadFailureCode = "store_unavailable"   // interrupted: the object store did not take the content
	UploadRestarted        UploadFailureCode = "service_restarted"   // interrupted: the node that received the content has ended
	UploadMalware          UploadFailureCode = "malware"             // rejected
	UploadContentMismatch  UploadFailureCode = "content_mismatch"    // rejected: the content is not of the declared type
	UploadEncrypted        UploadFailureCode = "encrypted"           // rejected: the content needs a password, so it cannot be inspected
	UploadUnscannable      UploadFailureCode = "unscannable"         // rejected: the malware scanner cannot inspect all of it
	UploadNoVerdict        UploadFailureCode = "scanner_unavailable" // failed: the malware scanner gave no verdict in time
	UploadContentLost      UploadFailureCode = "content_lost"        // failed: the stored content is missing or damaged
	UploadTimeOver         UploadFailureCode = "expired"             // expired
)

// UploadFailure is the reason why an upload was interrupted, or has ended without a file.
type UploadFailure struct {
	Code   UploadFailureCode `json:"code" doc:"For example connection_lost, content_mismatch or malware."`
	Detail string            `json:"detail"`
}

// Upload is an upload: the transfer of one file.
type Upload struct {
	UploadID       UploadID        `json:"upload_id"`
	State          UploadState     `json:"state" enum:"pending,receiving,scanning,ready,rejected,failed,expired,cancelled"`
	Filename       string          `json:"filename"`
	MediaType      string          `json:"media_type" doc:"The declared media type."`
	Size           int64           `json:"size" doc:"The declared size, in bytes."`
	Purpose        UploadPurpose   `json:"purpose" enum:"attachment,project,library"`
	ConversationID *ConversationID `json:"conversation_id"`
	ProjectID      *ProjectID      `json:"project_id"`
	ReceivedBytes  int64           `json:"received_bytes" doc:"The number of bytes of the current attempt that were received. It is updated at most once a second."`
	SHA256         *string         `json:"sha256" doc:"The SHA-256 of the content, in hexadecimal: the declared one, or that of the received content. Null: not known yet."`
	FileID         *FileID         `json:"file_id" doc:"The file, once the upload is ready."`
	Failure        *UploadFailure  `json:"failure" doc:"Why the last attempt was interrupted, or why the upload has ended without a file. A pending upload with a failure accepts the content again."`
	LastSequence   int64           `json:"last_sequence" doc:"The sequence of the last event. It changes with the state and with the progress."`
	CreatedAt      time.Time       `json:"created_at"`
	ExpiresAt      time.Time       `json:"expires_at" doc:"The upload accepts content until then. A body that began earlier may finish."`
}

// Address returns the path of the upload. An upload has no version.
func (u *Upload) Address() string { return u.Path() }

// Path returns the path of the upload.
func (u *Upload) Path() string { return "/files/uploads/" + u.UploadID.String() }

// ScanVerdict is the definite result of a malware scanner for all bytes of a content.
type ScanVerdict struct {
	Clean     bool
	Signature string            // the engine's name for what it found; empty when clean
	Refusal   UploadFailureCode // why the content is not clean: UploadMalware, UploadEncrypted or UploadUnscannable; empty when clean
	Engine    string
}
