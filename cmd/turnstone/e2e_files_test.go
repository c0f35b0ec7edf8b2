package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"net/http"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// twoPages is a PDF without a directory of its objects, which readers rebuild.
const twoPages = `%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Count 2 /Kids [4 0 R 6 0 R] >> endobj
3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
4 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents 5 0 R >> endobj
5 0 obj << /Length 39 >> stream
BT /F 12 Tf 72 720 Td (Tides rise) Tj ET
endstream endobj
6 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents 7 0 R >> endobj
7 0 obj << /Length 39 >> stream
BT /F 12 Tf 72 720 Td (Tides fall) Tj ET
endstream endobj
trailer << /Size 8 /Root 1 0 R >>
%%EOF
`

// sealedZip returns an archive with an entry that has the flag of encryption.
func sealedZip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "tides.txt", Flags: 1, CompressedSize64: 5, UncompressedSize64: 5})
	if err == nil {
		_, err = w.Write([]byte("xxxxx"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAnEncryptedArchiveIsRejected(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	content := sealedZip(t)
	var upload protocol.Upload
	u.Do(t, http.MethodPost, "/files/uploads", map[string]any{
		"filename": "tides.zip", "media_type": "application/zip", "size": len(content), "purpose": "library",
	}).Want(t, http.StatusCreated, &upload)
	u.Do(t, http.MethodPut, upload.Path()+"/content", client.Content(content), "Content-Type", "application/zip").Want(t, http.StatusOK, &upload)
	if upload.State != protocol.UploadRejected || upload.FileID != nil || upload.Failure == nil || upload.Failure.Code != protocol.UploadEncrypted {
		t.Errorf("%+v, %+v", upload, upload.Failure)
	}
	var list protocol.List[protocol.File]
	if u.Get(t, "/files", &list); len(list.Data) != 0 {
		t.Errorf("the library has %+v", list.Data)
	}
}

func TestTheTextOfAnUploadedFileIsReadByAChildOfTheService(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	for _, c := range []struct {
		name, mediaType, content, text string
		blocks                         int
	}{
		{"tides.pdf", "application/pdf", twoPages, "Tides rise\nTides fall\n", 2},
		{"tides.html", "text/html", "<html><body><h1>Tides</h1>", "# Tides\n", 0},
	} {
		var upload protocol.Upload
		u.Do(t, http.MethodPost, "/files/uploads", map[string]any{
			"filename": c.name, "media_type": c.mediaType, "size": len(c.content), "purpose": "library",
		}).Want(t, http.StatusCreated, &upload)
		u.Do(t, http.MethodPut, upload.Path()+"/content", client.Content(c.content), "Content-Type", c.mediaType).Want(t, http.StatusOK, &upload)
		var read protocol.TextRange
		sitetest.Eventually(t, "the text was read", func() bool {
			u.Get(t, "/files/"+upload.FileID.String()+"/text", &read)
			return read.State != protocol.TextPending
		})
		if read.State != protocol.TextDone || read.Text != c.text || len(read.Blocks) != c.blocks || read.Tokens == 0 {
			t.Errorf("%s: %+v", c.name, read)
		}
	}
}
