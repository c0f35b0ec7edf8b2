package exports

import (
	"context"
	"io"

	"go.uber.org/zap"

	"turnstone/persistence/exports/archive"
	"turnstone/persistence/files"
	"turnstone/protocol"
)

// exportedFile is an item of files.json.
type exportedFile struct {
	protocol.File
	Path *string `json:"path"` // of the content in the archive; null: it could not be read
}

// allFiles writes the contents of the files of the library and of messages, and then their list.
func (s *Store) allFiles(ctx context.Context, account protocol.AccountID, to *archive.Archive) error {
	var written []exportedFile
	for _, filter := range []files.Filter{{}, {Deleted: true}} {
		for after := (*files.Position)(nil); ; {
			found, next, err := s.files.ListFiles(ctx, account, &filter, after, page)
			if err != nil {
				return err
			}
			for i := range found {
				path, err := s.content(ctx, account, &found[i], to)
				if err != nil {
					return err
				}
				written = append(written, exportedFile{found[i], path})
			}
			if after = next; after == nil {
				break
			}
		}
	}
	return archive.List(to, "files.json", "files", func() ([]exportedFile, bool, error) { return written, false, nil })
}

// content writes the content of a file and returns its path. A file that was deleted since it was listed, or whose content
// is lost, has none.
func (s *Store) content(ctx context.Context, account protocol.AccountID, file *protocol.File, to *archive.Archive) (*string, error) {
	from, err := s.files.Open(ctx, account, file.FileID, 0, file.Size)
	switch code := protocol.CodeOf(err); {
	case code == protocol.CodeNotFound:
		return nil, nil // it has no path
	case code == protocol.CodeUnavailable:
		s.db.Log.Warn("a file is missing in an export", zap.Stringer("file", file.FileID), zap.Error(err))
		return nil, nil // it has no path
	case err != nil:
		return nil, err
	}
	defer func() { _ = from.Close() }() // it is only read
	path := "files/" + file.FileID.String()
	entry, err := to.Create(path)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(entry, from)
	if err != nil {
		return nil, err
	}
	if n < file.Size {
		s.db.Log.Error("a file is cut in an export", zap.Stringer("file", file.FileID))
		return nil, nil // the list names no path, although the archive has a part
	}
	return &path, nil
}
