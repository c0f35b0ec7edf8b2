package exhaustion

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// slowFiles are files that are valid, and keep the reader of texts and pictures busy for as long as their type allows.
func slowFiles(t *testing.T) map[string][]byte {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 7_000, 7_000))); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"text/plain":      bytes.Repeat([]byte("a "), 4<<20),
		"text/html":       bytes.Repeat([]byte("<i>a"), 1<<20),
		"text/csv":        bytes.Repeat([]byte("a,b,c,d\n"), 1<<20),
		"application/pdf": pdf(t, strings.Repeat("(a) Tj 1 0 Td ", 1<<19)),
		"image/png":       picture.Bytes(),
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": archive(t, map[string]string{
			"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
			"word/document.xml": `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` +
				strings.Repeat("<w:p><w:r><w:t>a</w:t></w:r></w:p>", 1<<20) + `</w:body></w:document>`,
		}),
	}
}

// pdf returns a document with one page, whose content stream is compressed.
func pdf(t *testing.T, content string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := fmt.Fprintf(w, "BT /F1 1 Tf %s ET", content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var offsets []int
	out.WriteString("%PDF-1.4\n")
	object := func(text string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
	object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>")
	object(fmt.Sprintf("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", packed.Len(), packed.String()))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, table)
	return out.Bytes()
}

// archive returns a ZIP archive.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		one, err := w.Create(name)
		if err == nil {
			_, err = one.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// manyParts is an archive of ChatGPT with a message of two million parts.
func manyParts(t *testing.T) []byte {
	t.Helper()
	return archive(t, map[string]string{"conversations.json": `[{"title":"Parts","create_time":1700000000,"current_node":"a","mapping":{"a":{"id":"a","children":[],` +
		`"message":{"id":"a","author":{"role":"user"},"create_time":1700000000,"content":{"content_type":"text","parts":["a"` + strings.Repeat(`,"a"`, 2_000_000) + `]}}}}}]`})
}

// TestTheSlowestBackgroundJobsOfAnAccount checks that the jobs of an account end in bounded memory although the node is killed,
// and that the job of another account ends too.
func TestTheSlowestBackgroundJobsOfAnAccount(t *testing.T) {
	t.Parallel()
	copies := 5 // of each file
	if *sample > 0 {
		copies = 1
	}
	site := sitetest.NewSite(t, "GOMEMLIMIT="+softLimit, "TURNSTONE_LOG_LEVEL=info")
	node := site.Start()
	u, other := sitetest.NewUser(t, site.Base), sitetest.NewUser(t, site.Base)
	var files, largest []string
	for media, content := range slowFiles(t) {
		for n := range copies {
			files = append(files, store(t, u, fmt.Sprint("slow", n), media, content))
		}
	}
	if *sample == 0 {
		for media, content := range largestFiles(t) {
			largest = append(largest, store(t, u, "largest "+media, media, content))
		}
	}
	checkPeak := func() {
		t.Helper()
		if peak := node.PeakMemory(t); peak > memoryLimit<<20 {
			t.Errorf("the node used %d MiB at its peak, want at most %d", peak>>20, memoryLimit)
		}
	}
	importing := u.Do(t, "POST", "/account/imports", client.Content(manyParts(t)), "Content-Type", "application/zip").Text(t, http.StatusAccepted, "import_id")
	checkPeak()
	over := u.Ledger.Plan()
	node.Kill()
	node = site.Start()
	over()
	small := store(t, other, "tides.txt", "text/plain", []byte("The tides of the north\n"))
	awaitText(t, other, small, protocol.TextDone)
	pending := 0
	for _, file := range files {
		var state protocol.File
		if u.Get(t, "/files/"+file, &state); state.TextState == protocol.TextPending {
			pending++
		}
	}
	t.Logf("%d of %d texts were pending when that of the other account was read", pending, len(files))
	for _, file := range files {
		awaitText(t, u, file, "")
	}
	for _, file := range largest {
		var state protocol.File
		awaitText(t, u, file, "")
		if u.Get(t, "/files/"+file, &state); state.TextState == protocol.TextFailed {
			t.Errorf("%s was not read", state.Filename)
		}
	}
	var state protocol.Import
	sitetest.Eventually(t, "the import ends", func() bool {
		u.Get(t, "/account/imports/"+importing, &state)
		return state.State == protocol.ImportCompleted || state.State == protocol.ImportFailed
	})
	checkPeak()
}

// awaitText waits until the text of a file was read, and checks its state unless want is empty.
func awaitText(t *testing.T, u *sitetest.User, file string, want protocol.TextState) {
	t.Helper()
	var state protocol.File
	sitetest.Eventually(t, "the text is read", func() bool {
		u.Get(t, "/files/"+file, &state)
		return state.TextState != protocol.TextPending
	})
	if want != "" && state.TextState != want {
		t.Errorf("the text of %s is %s", state.Filename, state.TextState)
	}
}
