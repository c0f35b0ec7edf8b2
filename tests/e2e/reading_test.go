package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

// archived returns an archive of entries: names and contents in turn.
func archived(t *testing.T, entries ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.Create(entries[i])
		if err == nil {
			_, err = w.Write([]byte(entries[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func encodedIn(t *testing.T, in encoding.Encoding, text string) string {
	t.Helper()
	encoded, err := in.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// document returns a text document of Word with the content of its body.
func document(t *testing.T, body string) string {
	t.Helper()
	return archived(t, "[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
		"word/document.xml", `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`+body+`</w:body></w:document>`)
}

// japanesePDF has text in a font that is not embedded.
const japanesePDF = `%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Count 1 /Kids [4 0 R] >> endobj
3 0 obj << /Type /Font /Subtype /Type0 /BaseFont /Gothic /Encoding /UniJIS-UTF16-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Gothic /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> /FontDescriptor << /Type /FontDescriptor /FontName /Gothic /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80 >> >>] >> endobj
4 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents 5 0 R >> endobj
5 0 obj << /Length 46 >> stream
BT /F 12 Tf 72 720 Td <6F6E6C50306E8868> Tj ET
endstream endobj
trailer << /Root 1 0 R >>
%%EOF
`

// manyPagesPDF returns a PDF of n pages with the same text.
func manyPagesPDF(n int) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Type /Pages /Count " + fmt.Sprint(n) + " /Kids [")
	for i := range n {
		fmt.Fprintf(&b, "%d 0 R ", i+5)
	}
	b.WriteString("] >> endobj\n3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n4 0 obj << /Length 34 >> stream\nBT /F 12 Tf 72 720 Td (Ebb) Tj ET \nendstream endobj\n")
	for i := range n {
		fmt.Fprintf(&b, "%d 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents 4 0 R >> endobj\n", i+5)
	}
	b.WriteString("trailer << /Root 1 0 R >>\n%%EOF\n")
	return b.String()
}

// photo returns a JPEG of noise, so that it has much data.
func photo(t *testing.T) string {
	t.Helper()
	of := image.NewRGBA(image.Rect(0, 0, 600, 400))
	draw.Draw(of, of.Bounds(), image.NewUniform(color.RGBA{90, 120, 200, 255}), image.Point{}, draw.Src)
	for i := range of.Pix {
		of.Pix[i] ^= byte(i*i>>7) & 31
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, of, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// reading is a file that a user uploads, and what has to become of it.
type reading struct {
	name, mediaType, content string
	state                    protocol.TextState
	text                     string // a part of its text, which the model gets, too
	reason                   protocol.TextReason
	note                     protocol.NoteKind
	shown                    string      // in the preview; default: whole
	got                      string      // a part of what the model gets, besides the text
	size                     image.Point // of the picture that the model gets; zero: any
}

// readings are the rows of the table of what users upload.
func readings(t *testing.T) []reading {
	const russian = "Прилив приходит дважды в день, и отлив следует за ним. Это знает каждый рыбак на берегу моря."
	const japaneseText = "潮は一日に二回満ちます。漁師はそれを知っています。東京の港でも同じです。"
	const chinese = "潮水每天涨两次。渔民都知道这一点。上海的港口也是这样。"
	const koreanText = "조수는 하루에 두 번 들어옵니다. 어부들은 그것을 압니다. 부산 항구도 같습니다."
	whole := photo(t)
	const wordType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	return []reading{
		{name: "japanese.pdf", mediaType: "application/pdf", content: japanesePDF, state: protocol.TextDone, text: "潮汐の表"},
		{name: "many.pdf", mediaType: "application/pdf", content: manyPagesPDF(5001), state: protocol.TextDone, text: "Ebb", shown: "*"},
		{name: "sjis.txt", mediaType: "text/plain", content: encodedIn(t, japanese.ShiftJIS, japaneseText), state: protocol.TextDone, text: japaneseText, note: protocol.NoteEncoding, got: "shift_jis"},
		{name: "eucjp.txt", mediaType: "text/plain", content: encodedIn(t, japanese.EUCJP, japaneseText), state: protocol.TextDone, text: japaneseText, note: protocol.NoteEncoding},
		{name: "gb.txt", mediaType: "text/plain", content: encodedIn(t, simplifiedchinese.GB18030, chinese), state: protocol.TextDone, text: chinese, note: protocol.NoteEncoding},
		{name: "euckr.txt", mediaType: "text/plain", content: encodedIn(t, korean.EUCKR, koreanText), state: protocol.TextDone, text: koreanText, note: protocol.NoteEncoding},
		{name: "cp1251.txt", mediaType: "text/plain", content: encodedIn(t, charmap.Windows1251, russian), state: protocol.TextDone, text: russian, note: protocol.NoteEncoding},
		{name: "koi8.txt", mediaType: "text/plain", content: encodedIn(t, charmap.KOI8R, russian), state: protocol.TextDone, text: russian, note: protocol.NoteEncoding},
		{name: "utf16.txt", mediaType: "text/plain", content: encodedIn(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "Tides rise and fall\n"), state: protocol.TextDone, text: "Tides rise and fall"},
		{name: "late.html", mediaType: "text/html", content: "<html><body><!--" + strings.Repeat("x", 1100) + "--><p>Gezeiten für Größen</p></body></html>", state: protocol.TextDone, text: "Gezeiten für Größen"},
		{name: "book.epub", mediaType: "application/epub+zip", content: archived(t,
			"META-INF/container.xml", `<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
			"book.opf", `<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="A.xhtml" media-type="text/x-oeb1-document"/><item id="b" href="gone.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>`,
			"a.xhtml", `<html><body><p>The ebb of the book</p></body></html>`), state: protocol.TextDone, text: "The ebb of the book", note: protocol.NoteMissingParts},
		{name: "scan.pdf", mediaType: "application/pdf", content: strings.NewReplacer("(Tides rise) Tj", "              ", "(Tides fall) Tj", "              ").Replace(twoPages), state: protocol.TextNoText, reason: protocol.TextNothing, shown: "*"},
		{name: "hidden.docx", mediaType: wordType, content: document(t, `<w:p><w:r><w:t>Shown tides</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>Secret ebb</w:t></w:r></w:p>`), state: protocol.TextDone, text: "Shown tides", note: protocol.NoteHidden, got: "Hidden passages are left out: 1."},
		{name: "nested.html", mediaType: "text/html", content: "<html><body>" + strings.Repeat("<div>", 900) + "Deep tides", state: protocol.TextDone, text: "Deep tides", note: protocol.NotePlain},
		{name: "mail.eml", mediaType: "message/rfc822", content: "From: Ada <ada@example.org>\r\nSubject: Tides\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nVGhlIGViYiBpcyBhdCBzaXgu\r\n", state: protocol.TextDone, text: "The ebb is at six."},
		{name: "note.rtf", mediaType: "application/rtf", content: `{\rtf1\ansi caf\'e9 tides\par}`, state: protocol.TextDone, text: "café tides"},
		{name: "sums.ipynb", mediaType: "application/x-ipynb+json", content: `{"cells":[{"cell_type":"code","source":"print(1)","outputs":[{"output_type":"stream","text":["one tide\n"]}]}],"metadata":{}}`, state: protocol.TextDone, text: "one tide"},
		{name: "photo.png", mediaType: "image/png", content: whole, state: protocol.TextNone, shown: "picture"},
		{name: "endless.jpg", mediaType: "image/jpeg", content: strings.TrimSuffix(whole, "\xFF\xD9"), state: protocol.TextNone, shown: "picture"},
		{name: "cut.jpg", mediaType: "image/jpeg", content: whole[:len(whole)/2], state: protocol.TextNone, note: protocol.NoteMissingParts, shown: "picture", got: "Parts of the document are missing or damaged: 1."},
		{name: "C# notes.md", mediaType: "text/markdown", content: "Notes on sharp tides", state: protocol.TextDone, text: "Notes on sharp tides", got: "C# notes.md"},
		{name: "50% off & more.txt", mediaType: "text/plain", content: "Half of the tides", state: protocol.TextDone, text: "Half of the tides"},
		{name: ".env", mediaType: "application/octet-stream", content: "TIDES=two", state: protocol.TextDone, text: "TIDES=two"},
		{name: "می\u200cخواهم 👩\u200d👧.txt", mediaType: "text/plain", content: "Joined tides", state: protocol.TextDone, text: "Joined tides"},
		{name: "table.csv", mediaType: "application/vnd.ms-excel", content: "harbour,ebb\nNorth,6\n", state: protocol.TextDone, text: "North,6"},
		{name: "data.jsonld", mediaType: "application/ld+json", content: `{"tide": "two"}`, state: protocol.TextDone, text: `{"tide": "two"}`},
		{name: "code.ts", mediaType: "video/mp2t", content: "const tides: number = 2;\n", state: protocol.TextDone, text: "const tides: number = 2;"},
		{name: "broken.docx", mediaType: wordType, content: document(t, "")[:300], state: protocol.TextFailed, reason: protocol.TextDamaged, shown: "nothing", got: "it is damaged"},
	}
}

// TestEveryKindOfFileIsReadPreviewedAndShownToTheModel uploads all to one service, and then compares of each its text, the preview of
// what the model will get, what the model got, and what is downloaded.
func TestEveryKindOfFileIsReadPreviewedAndShownToTheModel(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var last modeltest.Request
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: func(request modeltest.Request) modeltest.Step {
		if text := request.Messages[len(request.Messages)-1].Text; strings.Contains(text, "Whence the file?") {
			mu.Lock()
			defer mu.Unlock()
			last = request
		}
		return modeltest.Step{Text: []string{"Hence."}}
	}})
	t.Cleanup(server.Close)
	s := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+server.URL, "TURNSTONE_MODEL_BALANCED=seer", "TURNSTONE_MODEL_IMAGES=seer",
		"TURNSTONE_LIMIT_UPLOADS=1000/1m burst 1000", "TURNSTONE_LIMIT_CHAT=1000/1m burst 1000", "TURNSTONE_LIMIT_READS=10000/1m burst 10000", "TURNSTONE_LIMIT_WRITES=1000/1m burst 1000")
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	rows := append(readings(t), moreReadings(t)...)
	uploads := make([]*protocol.Upload, len(rows))
	for i, r := range rows { // the service reads them meanwhile
		uploads[i] = uploaded(t, u, r.name, r.mediaType, r.content)
	}
	for i, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if uploads[i].FileID == nil {
				t.Fatalf("%+v, %+v", uploads[i], uploads[i].Failure)
			}
			id := uploads[i].FileID.String()
			r.checkText(t, u, id)
			conversation := u.NewConversation(t)
			r.checkPreview(t, u, id, conversation)
			u.Chat(t, sitetest.ChatBody{"input": []map[string]any{
				{"type": "text", "text": "Whence the file?"}, {"type": "file", "file_id": id},
			}}.In(conversation)).ReadToEnd(t)
			mu.Lock()
			defer mu.Unlock()
			r.checkRequest(t, &last)
		})
	}
}

func (r *reading) hasNote(notes []protocol.TextNote) bool {
	return r.note == "" || slices.ContainsFunc(notes, func(n protocol.TextNote) bool { return n.Kind == r.note })
}

// checkText awaits the text of a file, and compares it, the file and the name of its download.
func (r *reading) checkText(t *testing.T, u *sitetest.User, id string) {
	t.Helper()
	var read protocol.TextRange
	sitetest.Eventually(t, "the text was read", func() bool {
		u.Get(t, "/files/"+id+"/text", &read)
		return read.State != protocol.TextPending
	})
	var reason protocol.TextReason
	if read.Reason != nil {
		reason = *read.Reason
	}
	if read.State != r.state || !strings.Contains(read.Text, r.text) || reason != r.reason || !r.hasNote(read.Notes) || r.name == "many.pdf" && !read.Truncated {
		t.Errorf("the text is %.300q, %s, reason %s, notes %+v, truncated %v", read.Text, read.State, reason, read.Notes, read.Truncated)
	}
	var file protocol.File
	if u.Get(t, "/files/"+id, &file); file.Filename != r.name || file.TextState != r.state {
		t.Errorf("the file is %+v", file)
	}
	content := u.Do(t, http.MethodGet, "/files/"+id+"/content", nil)
	_, parameters, err := mime.ParseMediaType(content.Header.Get("Content-Disposition"))
	if err != nil || parameters["filename"] != r.name || content.Status != http.StatusOK || string(content.Body) != r.content {
		t.Errorf("the download is %d, %q, %v, %d bytes", content.Status, parameters, err, len(content.Body))
	}
}

func (r *reading) checkPreview(t *testing.T, u *sitetest.User, id, conversation string) {
	t.Helper()
	var prepared struct {
		Data []struct {
			Shown  *string
			Reason *string
			Notes  []protocol.TextNote
		}
	}
	u.Do(t, http.MethodPost, "/conversations/"+conversation+"/attachments", map[string]any{"file_ids": []any{id}}).Want(t, http.StatusOK, &prepared)
	preview := prepared.Data[0]
	want := r.shown
	if want == "" {
		want = "whole"
	}
	if preview.Shown == nil || want != "*" && *preview.Shown != want || !r.hasNote(preview.Notes) {
		t.Errorf("the preview is %+v", preview)
	}
}

// checkRequest compares what the model got.
func (r *reading) checkRequest(t *testing.T, request *modeltest.Request) {
	t.Helper()
	got := request.Messages[len(request.Messages)-1]
	if !strings.Contains(got.Text, r.text) && r.shown != "*" || !strings.Contains(got.Text, r.got) || r.shown == "picture" && len(got.Pictures) != 1 {
		t.Errorf("the model got %.600q with %d pictures", got.Text, len(got.Pictures))
	}
	if r.size == (image.Point{}) || len(got.Pictures) == 0 {
		return
	}
	if shown, _, err := image.DecodeConfig(bytes.NewReader(got.Pictures[0].Content)); err != nil || shown.Width != r.size.X || shown.Height != r.size.Y {
		t.Errorf("the picture is %dx%d, %v", shown.Width, shown.Height, err)
	}
}
