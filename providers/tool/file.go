package tool

import (
	"context"

	"turnstone/actors/modelinput"
	"turnstone/actors/toolbox"
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

// readable returns what is known of a file with a text in a scope. If there is none, the error is for the model and the reader.
func readable(ctx context.Context, files Files, scope turnlog.Scope, id protocol.FileID) (*turnlog.FileHead, error) {
	head, err := files.ScopedFileHead(ctx, scope, id)
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		return nil, &toolbox.Failure{Code: "not_found", Detail: "There is no file with this id."}
	case err != nil:
		return nil, err
	case head.State == protocol.TextPending:
		return nil, &toolbox.Failure{Code: "not_ready", Detail: "The text of this file was not read yet. Try again later."}
	case head.State == protocol.TextNoText || head.State == protocol.TextFailed:
		return nil, &toolbox.Failure{Code: "no_text", Detail: "This file has no text: " + modelinput.CauseOf(head.Reason) + "."}
	case head.State != protocol.TextDone || head.Size == 0:
		return nil, &toolbox.Failure{Code: "no_text", Detail: "This file has no text."}
	}
	return head, nil
}
