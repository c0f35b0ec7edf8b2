package exhaustion

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// repeated returns pieces that differ, so that an archive of them is not refused for its ratio.
func repeated(n int, piece string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, piece, uint32(i)*2654435761) // it only has to differ
	}
	return b.String()
}

// largestFiles are valid files of the readers that slowFiles does not have, about as large as these read.
func largestFiles(t *testing.T) map[string][]byte {
	t.Helper()
	const (
		packages    = `http://schemas.openxmlformats.org/package/2006/`
		office      = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`
		sheets      = `http://schemas.openxmlformats.org/spreadsheetml/2006/main`
		open        = `urn:oasis:names:tc:opendocument:xmlns:`
		many        = 400_000
		manySlides  = 4000
		side        = 6300 // 40 megapixels
		attachments = 400
	)
	related := func(kind, target string) string {
		return `<Relationships xmlns="` + packages + `relationships"><Relationship Id="r1" Type="` + office + `/` + kind + `" Target="` + target + `"/></Relationships>`
	}
	openDocument := func(kind, body string) []byte {
		return archive(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument." + kind, "content.xml": `<office:document-content xmlns:office="` + open + `office:1.0" xmlns:text="` + open + `text:1.0" xmlns:table="` + open + `table:1.0" xmlns:draw="` + open + `drawing:1.0"><office:body>` + body + `</office:body></office:document-content>`})
	}
	var slides, relations strings.Builder
	presentation := map[string]string{"[Content_Types].xml": `<Types xmlns="` + packages + `content-types"/>`, "_rels/.rels": related("officeDocument", "ppt/presentation.xml")}
	for n := range manySlides {
		fmt.Fprintf(&slides, `<p:sldId id="%d" r:id="s%d"/>`, 256+n, n)
		fmt.Fprintf(&relations, `<Relationship Id="s%d" Type="%s/slide" Target="slides/%d.xml"/>`, n, office, n)
		presentation[fmt.Sprintf("ppt/slides/%d.xml", n)] = `<p:sld xmlns:p="p" xmlns:a="a">` + repeated(100, "<a:p><a:t>%08x</a:t></a:p>") + `</p:sld>`
	}
	presentation["ppt/presentation.xml"] = `<p:presentation xmlns:p="p" xmlns:r="` + office + `"><p:sldIdLst>` + slides.String() + `</p:sldIdLst></p:presentation>`
	presentation["ppt/_rels/presentation.xml.rels"] = `<Relationships xmlns="` + packages + `relationships">` + relations.String() + `</Relationships>`
	var picture, moving, bitmap, scanned bytes.Buffer
	gray := image.NewGray(image.Rect(0, 0, side, side))
	for _, err := range []error{jpeg.Encode(&picture, gray, nil), gif.Encode(&moving, gray, nil), bmp.Encode(&bitmap, gray), tiff.Encode(&scanned, gray, &tiff.Options{Compression: tiff.Deflate})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string][]byte{
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": archive(t, map[string]string{
			"[Content_Types].xml": `<Types xmlns="` + packages + `content-types"><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>`,
			"_rels/.rels":         related("officeDocument", "xl/workbook.xml"), "xl/_rels/workbook.xml.rels": related("worksheet", "worksheets/sheet1.xml"),
			"xl/workbook.xml":          `<workbook xmlns="` + sheets + `" xmlns:r="` + office + `"><sheets><sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>`,
			"xl/worksheets/sheet1.xml": `<worksheet xmlns="` + sheets + `"><sheetData>` + repeated(many, `<row><c t="inlineStr"><is><t>%08x</t></is></c></row>`) + `</sheetData></worksheet>`,
		}),
		"application/vnd.openxmlformats-officedocument.presentationml.presentation": archive(t, presentation),
		"application/vnd.oasis.opendocument.text":                                   openDocument("text", `<office:text>`+repeated(many, "<text:p>%08x</text:p>")+`</office:text>`),
		"application/vnd.oasis.opendocument.spreadsheet":                            openDocument("spreadsheet", `<office:spreadsheet><table:table table:name="A">`+repeated(many, "<table:table-row><table:table-cell><text:p>%08x</text:p></table:table-cell></table:table-row>")+`</table:table></office:spreadsheet>`),
		"application/vnd.oasis.opendocument.presentation":                           openDocument("presentation", `<office:presentation>`+repeated(manySlides, "<draw:page><text:p>%08x</text:p></draw:page>")+`</office:presentation>`),
		"application/epub+zip": archive(t, map[string]string{
			"mimetype": "application/epub+zip", "META-INF/container.xml": `<container xmlns="` + open + `container"><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`,
			"b.opf":   `<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>`,
			"a.xhtml": `<html><body>` + repeated(many, "<p>%08x</p>") + `</body></html>`,
		}),
		"message/rfc822":           []byte("From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\n"+repeated(2000, "%08x\r\n"), attachments) + "--b--\r\n"),
		"application/rtf":          []byte(`{\rtf1\ansi ` + repeated(8*many, `{\b %08x}\par `) + `}`),
		"application/x-ipynb+json": []byte(`{"cells":[` + strings.TrimSuffix(repeated(many, `{"cell_type":"code","source":"%08x","outputs":[{"output_type":"stream","text":["x\n"]}]},`), ",") + `],"metadata":{}}`),
		"multipart/related":        []byte("MIME-Version: 1.0\r\nContent-Type: multipart/related; type=\"text/html\"; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + repeated(many, "<p>%08x</p>") + "\r\n--b--\r\n"),
		"image/jpeg":               picture.Bytes(), "image/gif": moving.Bytes(), "image/bmp": bitmap.Bytes(), "image/tiff": scanned.Bytes(),
	}
}
