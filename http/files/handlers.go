package files

import (
	"context"
	"io"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/upload"
	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/persistence/files"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
	"turnstone/protocol/uploadlog"
)

// Uploads runs uploads; see package actors/upload.
type Uploads interface {
	Create(ctx context.Context, spec *uploadlog.Spec) (*protocol.Upload, error)
	Receive(ctx context.Context, account protocol.AccountID, id protocol.UploadID, body upload.Body) (*protocol.Upload, error)
	Cancel(ctx context.Context, account protocol.AccountID, id protocol.UploadID) (*protocol.Upload, error)
	Upload(ctx context.Context, account protocol.AccountID, id protocol.UploadID, atMost time.Duration) (*protocol.Upload, error)
	Follow(account protocol.AccountID, id protocol.UploadID, after int64) *upload.Reader
}

// StoredUploads reads who has an upload; see package persistence/files.
type StoredUploads interface {
	OwnsUpload(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error
}

// Store stores files; see package persistence/files.
type Store interface {
	OwnsFile(ctx context.Context, account protocol.AccountID, id protocol.FileID) error
	References(ctx context.Context, account protocol.AccountID, id protocol.FileID, limit int) ([]protocol.FileReference, error)
	File(ctx context.Context, account protocol.AccountID, id protocol.FileID) (*protocol.File, error)
	Files(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) (map[protocol.FileID]*protocol.File, error)
	ListFiles(ctx context.Context, account protocol.AccountID, filter *files.Filter, after *files.Position, limit int) (page []protocol.File, next *files.Position, err error)
	PickFiles(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, query string, limit int) ([]protocol.File, error)
	Open(ctx context.Context, account protocol.AccountID, id protocol.FileID, offset, length int64) (io.ReadCloser, error)
	Change(ctx context.Context, account protocol.AccountID, change *files.Change) (*protocol.File, error)
	Delete(ctx context.Context, account protocol.AccountID, id protocol.FileID, version *int64, session *protocol.SessionID) error
}

// Texts stores the texts of files; see package persistence/files.
type Texts interface {
	Text(ctx context.Context, account protocol.AccountID, id protocol.FileID, offset, limit int) (*protocol.TextRange, error)
	Thumbnail(ctx context.Context, account protocol.AccountID, id protocol.FileID) ([]byte, error)
	FileHeads(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) ([]turnlog.FileHead, error)
}

// Projects stores which files belong to a project; see package persistence/files.
type Projects interface {
	AddToProject(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, id protocol.FileID, session *protocol.SessionID) (*protocol.File, error)
	RemoveFromProject(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, id protocol.FileID, session *protocol.SessionID) error
}

// ProjectReader reads projects; see package persistence/projects.
type ProjectReader interface {
	Project(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error)
}

// The limits of a service that configures none.
const (
	DefaultMaxBytes = 100 << 20
	DefaultLifetime = time.Hour
	DefaultTextWait = 10 * time.Second
)

// Config has the dependencies and the limits of the handlers.
type Config struct {
	Uploads       Uploads
	StoredUploads StoredUploads
	Store         Store
	Texts         Texts
	Projects      Projects
	ProjectReader ProjectReader
	Streams       *exchange.Streams
	Sessions      exchange.Sessions
	Keys          *auth.Keys
	Log           *zap.Logger
	Now           func() time.Time
	Space         int           // of the context of a model, in bytes of text
	Pictures      bool          // every model accepts pictures
	TextWait      time.Duration // for texts that are being read, before the files of a message are prepared; 0: DefaultTextWait
	MaxBytes      int64         // of one file; 0: DefaultMaxBytes
	Lifetime      time.Duration // of an upload; 0: DefaultLifetime
}

// Handlers handle the requests for uploads and files. A Handlers has no state of its own.
type Handlers struct {
	Config
}

// New returns handlers.
func New(config Config) *Handlers {
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.Lifetime == 0 {
		config.Lifetime = DefaultLifetime
	}
	if config.TextWait == 0 {
		config.TextWait = DefaultTextWait
	}
	return &Handlers{Config: config}
}
