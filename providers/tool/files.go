package tool

import (
	"context"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Files reads files. Package persistence/files implements it.
type Files interface {
	// ScopedFileHead returns what is known of a file; protocol.CodeNotFound if it is not in the scope.
	ScopedFileHead(ctx context.Context, scope turnlog.Scope, file protocol.FileID) (*turnlog.FileHead, error)
	// ProjectFileHeads returns what is known of the newest files of a project.
	ProjectFileHeads(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, limit int) ([]turnlog.FileHead, error)
	// FileContent returns the text of a file.
	FileContent(ctx context.Context, account protocol.AccountID, file protocol.FileID) (text string, blocks []protocol.TextBlock, err error)
	// SearchFiles returns the best files for a query, at most limit, of the project of the scope, or of the library.
	SearchFiles(ctx context.Context, scope turnlog.Scope, query string, limit int) ([]protocol.SearchResult, error)
}
