package e2e

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // registers the format
	"image/png"
	"net/http"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/model/modeltest"
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

// uploaded uploads a content and returns its session, which has ended.
func uploaded(t *testing.T, u *sitetest.User, name, mediaType, content string) *protocol.Upload {
	t.Helper()
	var upload protocol.Upload
	u.Do(t, http.MethodPost, "/files/uploads", map[string]any{
		"filename": name, "media_type": mediaType, "size": len(content), "purpose": "library",
	}).Want(t, http.StatusCreated, &upload)
	u.Do(t, http.MethodPut, upload.Path()+"/content", client.Content(content), "Content-Type", mediaType).Want(t, http.StatusOK, &upload)
	return &upload
}

func TestAnEncryptedArchiveIsRejected(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	upload := uploaded(t, u, "tides.zip", "application/zip", sealedZip(t))
	if upload.State != protocol.UploadRejected || upload.FileID != nil || upload.Failure == nil || upload.Failure.Code != protocol.UploadEncrypted {
		t.Errorf("%+v, %+v", upload, upload.Failure)
	}
	var list protocol.List[protocol.File]
	if u.Get(t, "/files", &list); len(list.Data) != 0 {
		t.Errorf("the library has %+v", list.Data)
	}
}

func TestTheTextOfAnUploadedFileIsReadByAChildOfTheService(t *testing.T) {
	t.Parallel()
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
		upload := uploaded(t, u, c.name, c.mediaType, c.content)
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

// pictureOf returns a white PNG picture.
func pictureOf(t *testing.T, width, height int) string {
	t.Helper()
	canvas := image.NewGray(image.Rect(0, 0, width, height))
	for i := range canvas.Pix {
		canvas.Pix[i] = 255
	}
	var b bytes.Buffer
	if err := png.Encode(&b, canvas); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// seenBy describes the pictures of the last message of a request, and how the service describes the file.
func seenBy(request modeltest.Request) modeltest.Step {
	message := request.Messages[len(request.Messages)-1]
	said := fmt.Sprintf("%d pictures", len(message.Pictures))
	for _, picture := range message.Pictures {
		header, format, err := image.DecodeConfig(bytes.NewReader(picture.Content))
		said += fmt.Sprintf(", %s %s %dx%d %v", picture.MediaType, format, header.Width, header.Height, err)
	}
	if strings.Contains(message.Text, "This file has no text.") {
		said += ", and a file without text"
	}
	return modeltest.Step{Text: []string{said}}
}

func TestAPictureReachesAModelThatAcceptsPictures(t *testing.T) {
	t.Parallel()
	configured := func(wire string, more ...string) []string {
		server := modeltest.NewServer(wire, modeltest.Script{Respond: seenBy})
		t.Cleanup(server.Close)
		return append(more, "TURNSTONE_MODEL_BASE_URL="+server.URL, "TURNSTONE_MODEL_BALANCED=seer")
	}
	const seen = "1 pictures, image/jpeg jpeg 1568x1045 <nil>"
	for name, c := range map[string]struct {
		environment []string
		want, shown string
	}{
		"scripted":       {nil, "“tide.png”: A picture of 1568 × 1045 pixels (jpeg).", "picture"},
		"openai":         {configured(modeltest.Chat, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_IMAGES=seer"), seen, "picture"},
		"anthropic":      {configured(modeltest.Anthropic, "TURNSTONE_MODEL_PROVIDER=anthropic", "TURNSTONE_MODEL_IMAGES=seer"), seen, "picture"},
		"without images": {configured(modeltest.Chat, "TURNSTONE_MODEL_PROVIDER=openai"), "0 pictures, and a file without text", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sitetest.NewSite(t, c.environment...)
			s.Start()
			u := sitetest.NewUser(t, s.Base)
			upload := uploaded(t, u, "tide.png", "image/png", pictureOf(t, 1800, 1200))
			conversation := u.NewConversation(t)
			u.Chat(t, sitetest.ChatBody{"input": []map[string]any{
				{"type": "text", "text": "Whence?"}, {"type": "file", "file_id": upload.FileID},
			}}.In(conversation)).ReadToEnd(t) // the turn waits for the child
			messages := u.Messages(t, conversation)
			if answer := messages[len(messages)-1].Parts[0].Text; answer != c.want {
				t.Errorf("the answer is %q, want %q", answer, c.want)
			}
			var file protocol.File
			if u.Get(t, "/files/"+upload.FileID.String(), &file); !file.HasThumbnail || *file.Width != 1800 || *file.Height != 1200 {
				t.Errorf("%+v", file)
			}
			var prepared struct {
				Data []struct{ Shown string }
			}
			u.Do(t, http.MethodPost, "/conversations/"+conversation+"/attachments", map[string]any{"file_ids": []any{upload.FileID}}).Want(t, http.StatusOK, &prepared)
			if prepared.Data[0].Shown != c.shown {
				t.Errorf("%+v", prepared)
			}
		})
	}
}
