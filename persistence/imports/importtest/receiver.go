// Package importtest is the test suite for what receives the files of an import: the uploads of a node, and the stand-in of the tests of
// package imports. Only tests import it.
package importtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"turnstone/persistence/imports"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

const text = "Tides rise and fall.\n"

// file is a file of an import, whose content fails as a case wants.
type file struct {
	spec   *uploadlog.Spec
	opened error // of open
	read   error // after the content; nil: io.EOF
	opens  int
	closes int
}

func newFile(account protocol.AccountID) *file {
	hash := sha256.Sum256([]byte(text))
	id := protocol.NewUploadID()
	return &file{spec: &uploadlog.Spec{
		AccountID: account, UploadID: id, Filename: "tides.txt", MediaType: "text/plain", Size: int64(len(text)), SHA256: hash[:],
		Purpose: protocol.UploadForLibrary, ObjectName: id.String(), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}}
}

func (f *file) open() (io.ReadCloser, error) {
	f.opens++
	if f.opened != nil {
		return nil, f.opened
	}
	return content{io.MultiReader(bytes.NewReader([]byte(text)), failing{f.read}), f}, nil
}

type content struct {
	io.Reader
	of *file
}

func (c content) Close() error {
	c.of.closes++
	return nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// RunReceiver runs the suite for files of an account.
func RunReceiver(t *testing.T, account protocol.AccountID, receive imports.ReceiveFile) {
	t.Helper()
	broken, later := errors.New("the archive is broken"), &protocol.Error{Code: protocol.CodeUnavailable}
	for name, c := range map[string]struct {
		change func(*file)
		state  protocol.UploadState // empty: an error
		code   protocol.UploadFailureCode
	}{
		"a file":                          {func(*file) {}, protocol.UploadReady, ""},
		"another hash":                    {func(f *file) { f.spec.SHA256 = make([]byte, sha256.Size) }, protocol.UploadCancelled, protocol.UploadHashMismatch},
		"a content that is broken":        {func(f *file) { f.read, f.spec.Size = broken, f.spec.Size+1 }, protocol.UploadCancelled, protocol.UploadConnectionLost},
		"a content that cannot be opened": {func(f *file) { f.opened = broken }, protocol.UploadCancelled, protocol.UploadConnectionLost},
		"a store that is away":            {func(f *file) { f.opened = later }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(account)
			c.change(f)
			got, err := receive(t.Context(), f.spec, f.open)
			if c.state == "" {
				if protocol.CodeOf(err) != protocol.CodeUnavailable {
					t.Fatalf("got %+v, %v", got, err)
				}
				f.opened = nil // another attempt
				c.state = protocol.UploadReady
				got, err = receive(t.Context(), f.spec, f.open)
			}
			if err != nil || got.State != c.state || c.code != "" && (got.Failure == nil || got.Failure.Code != c.code) {
				t.Fatalf("got %+v with %+v, %v", got, got.Failure, err)
			}
			if f.opened == nil && f.closes != 1 {
				t.Errorf("the content was closed %d times", f.closes)
			}
			if c.state == protocol.UploadReady {
				f.check(t, got, receive)
			}
		})
	}
}

// check checks the upload of a file that was received, and that another attempt reads nothing and has the same result.
func (f *file) check(t *testing.T, got *protocol.Upload, receive imports.ReceiveFile) {
	t.Helper()
	opens := f.opens
	again, err := receive(t.Context(), f.spec, f.open)
	for _, upload := range []*protocol.Upload{got, again} {
		if err != nil || upload.FileID == nil || *upload.FileID != protocol.DeriveFileID(f.spec.UploadID) || upload.SHA256 == nil || *upload.SHA256 != hex.EncodeToString(f.spec.SHA256) {
			t.Errorf("got %+v, %v", upload, err)
		}
	}
	if f.opens != opens {
		t.Error("the content was read again")
	}
}
