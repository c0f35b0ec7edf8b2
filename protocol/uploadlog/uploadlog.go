// Package uploadlog defines the data that the actors and the store of uploads exchange: the specification of an
// upload, the batches of its log, and its owner. None of it is published.
//
// It imports only package protocol, and decides nothing.
package uploadlog

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"turnstone/protocol"
)

// Spec is the specification of an upload. It is stored with the upload and never changes.
type Spec struct {
	AccountID      protocol.AccountID
	UploadID       protocol.UploadID
	Filename       string
	MediaType      string // declared
	Size           int64  // declared, in bytes
	SHA256         []byte // declared; nil: not declared
	Purpose        protocol.UploadPurpose
	ConversationID *protocol.ConversationID
	ProjectID      *protocol.ProjectID
	SessionID      *protocol.SessionID // of the request, for the work history of a project
	ObjectName     string              // random; the names of the upload's objects consist of it
	CreatedAt      time.Time
	ExpiresAt      time.Time
}

// NewObjectName returns a name for the objects of an upload: 128 random bits.
func NewObjectName() string {
	name := make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	return hex.EncodeToString(name)
}

// Content describes the content that was received.
type Content struct {
	Key       string // of the object in quarantine
	Size      int64
	SHA256    [32]byte
	MediaType string // detected
}

// Append is one batch of an upload's log, with the row that results from it. It is stored only if (Owner, Epoch) still
// owns the upload and its next sequence is First.
type Append struct {
	AccountID   protocol.AccountID
	UploadID    protocol.UploadID
	Owner       protocol.NodeID
	Epoch       int32
	First, Last int64
	Frames      []byte // events First..Last, one line each
	State       protocol.UploadState
	Received    int64
	Content     *Content // from scanning on
	Failure     *protocol.UploadFailure
	File        *NewFile // with the state ready
	At          time.Time
}

// Rests reports whether no owner works on the upload after this batch.
func (a *Append) Rests() bool {
	return a.State != protocol.UploadReceiving && a.State != protocol.UploadScanning
}

// NewFile is the file that an upload creates.
type NewFile struct {
	FileID     protocol.FileID
	ObjectName string
	Kind       protocol.FileKind
	Engine     string // of the malware scanner
}

// Claim is the ownership of an upload, and the stored state from which its new owner continues.
type Claim struct {
	Spec
	Epoch        int32
	State        protocol.UploadState
	NextSequence int64
	Content      *Content
}

// Claimed names an upload and the epoch of its owner.
type Claimed struct {
	AccountID protocol.AccountID
	UploadID  protocol.UploadID
	Epoch     int32
}

// Work returns the upload and the epoch of the claim.
func (c Claimed) Work() (protocol.UploadID, int32) { return c.UploadID, c.Epoch }

// QuarantinePrefix returns the beginning of the keys under which an upload receives its content.
func QuarantinePrefix(account protocol.AccountID, objectName string) string {
	return "q/" + account.String() + "/" + objectName + "/"
}

// ObjectKey returns the key of the content of a file.
func ObjectKey(account protocol.AccountID, objectName string) string {
	return "f/" + account.String() + "/" + objectName
}

// AccountPrefixes returns the beginnings of the keys of all objects of an account.
func AccountPrefixes(account protocol.AccountID) []string {
	return []string{"q/" + account.String() + "/", "f/" + account.String() + "/"}
}

// Conflict returns the error for a command that the state of an upload does not allow.
func Conflict(current *protocol.Upload) error {
	switch {
	case current.State == protocol.UploadExpired:
		return protocol.Errorf(protocol.CodeUploadExpired, "The upload has expired. Send the file in a new upload.")
	case current.State.Terminal():
		return protocol.Conflict(protocol.CodeUploadFinished, current, "The upload has already ended.")
	}
	if current.State == protocol.UploadPending {
		return protocol.Conflict(protocol.CodeConflict, current, "Another request was sending the content of this upload at the same time. Send it again.")
	}
	return protocol.Conflict(protocol.CodeConflict, current, "Another request is sending the content of this upload.")
}
