package files

import (
	"context"

	"turnstone/protocol"
)

// StoreText stores what was read from a file.
func (s *Texts) StoreText(ctx context.Context, account protocol.AccountID, file protocol.FileID, x *protocol.Extraction) error {
	return s.storeText(ctx, ExtractArgs{AccountID: account, FileID: file}, x)
}
