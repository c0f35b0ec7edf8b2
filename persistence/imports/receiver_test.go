package imports_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"turnstone/persistence/imports/importtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// fakeReceiver takes the place of the uploads of a node: it stores a content as a file, without a scanner. Both pass
// importtest.RunReceiver.
type fakeReceiver struct {
	*storetest.World
	received int                                    // contents
	ended    map[protocol.UploadID]*protocol.Upload // sessions
	refuse   func(*uploadlog.Spec) error            // nil: none
	fail     func(*uploadlog.Spec) *protocol.Upload // a session that ends without a file; nil: none
}

func receiver(w *storetest.World) *fakeReceiver {
	return &fakeReceiver{World: w, ended: map[protocol.UploadID]*protocol.Upload{}}
}

func (f *fakeReceiver) receive(ctx context.Context, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error) {
	f.Helper()
	if f.refuse != nil {
		if err := f.refuse(spec); err != nil {
			return nil, err
		}
	}
	if f.fail != nil {
		if ended := f.fail(spec); ended != nil {
			return ended, nil
		}
	}
	if ended := f.ended[spec.UploadID]; ended != nil {
		return ended, nil
	}
	ended, err := f.store(ctx, spec, open)
	if err == nil {
		f.ended[spec.UploadID] = ended
	}
	return ended, err
}

func (f *fakeReceiver) store(ctx context.Context, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error) {
	cancelled := func(code protocol.UploadFailureCode, detail string) *protocol.Upload {
		return &protocol.Upload{State: protocol.UploadCancelled, Failure: &protocol.UploadFailure{Code: code, Detail: detail}}
	}
	content, err := open()
	var text []byte
	if err == nil {
		text, err = io.ReadAll(content)
		_ = content.Close() // it is only read
	}
	sum := sha256.Sum256(text)
	switch {
	case protocol.CodeOf(err) == protocol.CodeUnavailable:
		return nil, err
	case err != nil:
		return cancelled(protocol.UploadConnectionLost, "The content could not be read completely."), nil
	case int64(len(text)) != spec.Size || spec.SHA256 != nil && !bytes.Equal(sum[:], spec.SHA256):
		return cancelled(protocol.UploadHashMismatch, "The content has a different SHA-256 from the one that the upload declares."), nil
	}
	f.received++
	_, err = f.Database.Objects(f.T).Put(ctx, uploadlog.ObjectKey(spec.AccountID, spec.ObjectName), bytes.NewReader(text), spec.Size)
	f.Must(err)
	id := protocol.DeriveFileID(spec.UploadID)
	f.Database.Admin(f.T, `
		insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		values ($1, $2, $3, $4, 'text', $5, $6, $7, 'none', now(), now(), now()) on conflict do nothing`,
		spec.AccountID, id, spec.Filename, spec.MediaType, spec.Size, sum[:], spec.ObjectName)
	f.Database.Admin(f.T, `insert into file_totals (account_id, bytes, files) values ($1, $2, 1)
		on conflict (account_id) do update set bytes = file_totals.bytes + excluded.bytes, files = file_totals.files + 1`, spec.AccountID, spec.Size)
	hash := hex.EncodeToString(sum[:])
	return &protocol.Upload{State: protocol.UploadReady, SHA256: &hash, FileID: &id}, nil
}

func TestTheStandInForUploadsReceivesFilesAsTheyDo(t *testing.T) {
	w := storetest.NewWorld(t)
	importtest.RunReceiver(t, w.Account, receiver(w).receive)
}
