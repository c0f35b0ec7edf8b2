package upload

import (
	"context"
	"io"

	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// Store stores uploads durably. Package persistence implements it on Postgres. Its methods may be called from any goroutine.
//
// Every method that writes checks ownership itself. An error with a meaning for the caller is a *protocol.Error. After
// any error other than ownership.ErrFenced, the operation either had no effect or its outcome was resolved; a method that
// cannot determine the outcome returns protocol.CodeUnavailable.
type Store interface {
	// CreateUpload stores a new upload with its first events, and the response to an idempotent request.
	CreateUpload(ctx context.Context, spec *uploadlog.Spec, begin *uploadlog.Append) (*protocol.Upload, error)
	// ClaimPending makes a node the owner of an upload that accepts content. In any other state, the error is a conflict
	// with the upload, or protocol.CodeUploadExpired.
	ClaimPending(ctx context.Context, account protocol.AccountID, upload protocol.UploadID, node protocol.NodeID) (*uploadlog.Claim, error)
	// ClaimAny makes a node the owner of an upload that has not ended, whatever its owner. If it has, the error is a
	// conflict with the upload, or protocol.CodeUploadExpired.
	ClaimAny(ctx context.Context, account protocol.AccountID, upload protocol.UploadID, node protocol.NodeID) (*uploadlog.Claim, error)
	// Load reads an upload that a node has claimed; ownership.ErrFenced if the upload has ended or has another owner
	// or epoch.
	Load(ctx context.Context, claim Claimed, node protocol.NodeID) (*uploadlog.Claim, error)
	// Overtaken reports whether an upload was claimed again after a claim, and does not have the content that the claim
	// stored under key. That content then never has an effect.
	Overtaken(ctx context.Context, claim Claimed, key string) (bool, error)
	// AppendUpload stores a batch, and the file that it creates. A repeat of a stored batch succeeds without an effect.
	AppendUpload(ctx context.Context, batch *uploadlog.Append) error
	// ClaimDue claims the work of nodes that have ended, and uploads that have expired; at most limit of each.
	ClaimDue(ctx context.Context, node protocol.NodeID, limit int) ([]Claimed, error)
	// Owned lists the uploads that a node works on, for comparison with its actors.
	Owned(ctx context.Context, node protocol.NodeID) ([]Claimed, error)
	// ClaimLost claims an upload of this node again that has no actor. The error is ownership.ErrFenced if the
	// upload has ended or has another owner or epoch.
	ClaimLost(ctx context.Context, claim Claimed, node protocol.NodeID) (Claimed, error)
	// Upload reads an upload.
	Upload(ctx context.Context, account protocol.AccountID, upload protocol.UploadID) (*protocol.Upload, error)
	// UploadFrames reads the events after a sequence, one per line. last is the sequence of the last of them.
	UploadFrames(ctx context.Context, account protocol.AccountID, upload protocol.UploadID, after int64) (frames []byte, last int64, err error)
}

// Claimed names an upload and the epoch of its owner.
type Claimed = uploadlog.Claimed

// Objects stores contents. Package persistence/objects documents the methods.
type Objects interface {
	Put(ctx context.Context, key string, body io.Reader, size int64) ([32]byte, error)
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	Copy(ctx context.Context, from, to string) error
	Delete(ctx context.Context, key string) error
	Ready(ctx context.Context) error
}

// Scanner scans contents for malware. Package providers/scanner documents the methods.
type Scanner interface {
	Scan(ctx context.Context, body io.Reader, size int64) (protocol.ScanVerdict, error)
	Ready(ctx context.Context) error
}

// Detector detects media types.
type Detector interface {
	// Detect returns the media type of a content from its first HeadBytes bytes, or all of them if there are fewer.
	// mismatch is the reason why the content cannot be a file with this name and declared type.
	Detect(head []byte, filename, declared string) (mediaType string, mismatch *protocol.UploadFailure)
}

// Inspector finds out whether contents are encrypted.
type Inspector interface {
	// Encrypted reports whether a content of a media type cannot be read without a password. It opens the content at most
	// once, and only if needed. An error means that another attempt may succeed; one of open is returned unchanged.
	Encrypted(ctx context.Context, open func() (io.ReadCloser, error), mediaType string) (bool, error)
}

// HeadBytes is the number of bytes from which a Detector detects the media type.
const HeadBytes = 8 << 10

// Body is the content that a request sends.
type Body interface {
	io.Reader
	// Stop ends reads, those that wait included.
	Stop()
}
