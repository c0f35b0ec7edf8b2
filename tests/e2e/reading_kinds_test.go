package e2e

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/traditionalchinese"

	"turnstone/protocol"
	"turnstone/providers/extract/extracttest"
)

// drawn returns a picture of 1200x800 pixels in a format.
func drawn(t *testing.T, encode func(io.Writer, image.Image) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, extracttest.Quarters(1200, 800)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// heif returns a picture in a format of libheif.
func heif(t *testing.T, picture, extension string, options ...string) string {
	t.Helper()
	folder := t.TempDir()
	source, target := filepath.Join(folder, "a.png"), filepath.Join(folder, "a."+extension)
	if err := os.WriteFile(source, []byte(picture), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "heif-enc", append(options, source, "-o", target)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v (libheif-examples is needed: run make debian-test)", out, err)
	}
	content, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func workbook(t *testing.T) string {
	t.Helper()
	f := excelize.NewFile()
	var b bytes.Buffer
	err := f.SetSheetRow("Sheet1", "A1", &[]any{"harbour", 6})
	if err == nil {
		err = f.Write(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const relationSpace = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`

func slides(t *testing.T) string {
	t.Helper()
	const spaces = `xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="` + relationSpace + `"`
	const relations = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	return archived(t, "[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels", relations+`<Relationship Id="r1" Type="`+relationSpace+`/officeDocument" Target="ppt/presentation.xml"/></Relationships>`,
		"ppt/presentation.xml", `<p:presentation `+spaces+`><p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", relations+`<Relationship Id="r1" Type="`+relationSpace+`/slide" Target="slides/slide1.xml"/></Relationships>`,
		"ppt/slides/slide1.xml", `<p:sld `+spaces+`><p:txBody><a:p><a:r><a:t>Tides of a slide</a:t></a:r></a:p></p:txBody></p:sld>`)
}

func openText(t *testing.T, entries ...string) string {
	t.Helper()
	return archived(t, append(entries, "content.xml", `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text><text:p>Open tides</text:p></office:text></office:body></office:document-content>`)...)
}

// moreReadings are further rows: pictures, documents, encodings, names and media types.
func moreReadings(t *testing.T) []reading {
	const greek = "Αγαπητοί συνάδελφοι, παρακαλούμε να υποβάλετε την τριμηνιαία έκθεση έως την Παρασκευή. Η συνάντηση θα γίνει στον τρίτο όροφο."
	const polish = "Szanowni Państwo, prosimy o złożenie sprawozdania kwartalnego do piątku. Spotkanie odbędzie się na trzecim piętrze głównego biura w Łodzi. Zażółć gęślą jaźń."
	const taiwanese = "各位同事：請在下週五之前提交季度報告。會議將在台北總部三樓舉行，請準時參加。謝謝大家的配合。"
	const mht = "MIME-Version: 1.0\r\nContent-Type: multipart/related; type=\"text/html\"; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Location: https://example.org/\r\n\r\n<p>Saved tides</p>\r\n--b--\r\n"
	const odt = "application/vnd.oasis.opendocument.text"
	asPNG := drawn(t, png.Encode)
	asJPEG := drawn(t, func(w io.Writer, of image.Image) error { return jpeg.Encode(w, of, nil) })
	landscape, portrait := image.Pt(1200, 800), image.Pt(800, 1200)
	picture := func(name, mediaType, content string, size image.Point) reading {
		return reading{name: name, mediaType: mediaType, content: content, state: protocol.TextNone, shown: "picture", size: size}
	}
	text := func(name, mediaType, content, text string) reading {
		return reading{name: name, mediaType: mediaType, content: content, state: protocol.TextDone, text: text}
	}
	guessed := func(r reading) reading {
		r.note = protocol.NoteEncoding
		return r
	}
	old := func(name, mediaType string) reading { // what is not read says so, also where LibreOffice is installed: it is no document
		r := reading{name: name, mediaType: mediaType, content: "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + strings.Repeat("\x00", 600), state: protocol.TextFailed, reason: protocol.TextNoReader, shown: "nothing", got: "has no program that reads this type"}
		if _, err := exec.LookPath("soffice"); err == nil {
			r.reason, r.got = protocol.TextUnreadable, "the reader failed"
		}
		return r
	}
	return []reading{
		picture("animated.webp", "image/webp", extracttest.AnimatedWebP(1200, 800, extracttest.PlainWebP(600, 400, extracttest.CornerColors[0]), extracttest.PlainWebP(600, 400, extracttest.CornerColors[2])), landscape),
		picture("turned.webp", "image/webp", extracttest.WithOrientation(extracttest.PlainWebP(1200, 800, extracttest.CornerColors[2]), 6), portrait),
		picture("turned.png", "image/png", extracttest.WithOrientation(asPNG, 8), portrait),
		picture("turned.jpg", "image/jpg", extracttest.Turned(asJPEG, 6, binary.BigEndian), portrait),
		picture("declared.jpg", "image/jpeg", asPNG, landscape),
		picture("photo.heic", "image/heic", heif(t, asPNG, "heic"), landscape),
		picture("photo.avif", "image/avif", heif(t, asPNG, "avif", "-A"), landscape),
		picture("scan.tiff", "image/tif", drawn(t, func(w io.Writer, of image.Image) error { return tiff.Encode(w, of, nil) }), landscape),
		picture("old.bmp", "image/x-ms-bmp", drawn(t, bmp.Encode), landscape),
		guessed(text("big5.txt", "text/plain", encodedIn(t, traditionalchinese.Big5, taiwanese), taiwanese)),
		guessed(text("cp1253.txt", "text/plain", encodedIn(t, charmap.Windows1253, greek), greek)),
		guessed(text("latin2.txt", "text/plain", encodedIn(t, charmap.ISO8859_2, polish), polish)),
		text("open.odt", odt, openText(t, "mimetype", odt), "Open tides"),
		text("deflated.odt", odt, openText(t, "META-INF/manifest.xml", `<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>`), "Open tides"),
		text("slides.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", slides(t), "Tides of a slide"),
		text("sheet.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", workbook(t), "harbour\t6"),
		old("old.doc", "application/msword"), old("old.xls", "application/vnd.ms-excel"), old("old.ppt", "application/vnd.ms-powerpoint"),
		text("saved.mhtml", "multipart/related", mht, "Saved tides"),
		{name: "mail.msg", mediaType: "application/vnd.ms-outlook", content: extracttest.CompoundFile(extracttest.OutlookMail()), state: protocol.TextDone, text: "The ebb is at six.", note: protocol.NoteUnreadMembers},
		text(strings.Repeat("潮", 46)+strings.Repeat("x", 100)+".txt", "text/plain", "Long tides", "Long tides"), // 150 characters
		text("settings.yaml", "text/x-yaml", "tides: 2\n", "tides: 2"),
		text("plan.dxf", "image/vnd.dxf", "0\nSECTION\n", "SECTION"),
		text("saved.eml", "application/octet-stream", "From: Ada <ada@example.org>\r\nSubject: Tides\r\n\r\nThe flood is at noon.\r\n", "The flood is at noon."),
	}
}
