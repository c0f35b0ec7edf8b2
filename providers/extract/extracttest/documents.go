package extracttest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/xuri/excelize/v2"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/text/encoding"
)

// Entry is an entry of an archive.
type Entry struct{ Name, Body string }

// Zip returns an archive. change, if not nil, changes the header of each entry.
func Zip(entries []Entry, change ...func(*zip.FileHeader)) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.Name, Method: zip.Deflate}
		for _, one := range change {
			one(header)
		}
		w, err := z.CreateHeader(header)
		if err == nil {
			_, err = w.Write([]byte(e.Body))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// EncryptedZip returns an archive whose entries have the flag of encryption, also in the directory.
func EncryptedZip(entries []Entry) string {
	return Zip(entries, func(h *zip.FileHeader) { h.Flags |= 1 })
}

const head = `<?xml version="1.0" encoding="UTF-8"?>`

func office(main string, rest ...Entry) []Entry {
	return append([]Entry{
		{"[Content_Types].xml", head + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
		{"_rels/.rels", head + relations("officeDocument", main)},
	}, rest...)
}

// relations returns relations of alternating kinds and targets, with the identifiers r1, r2, …
func relations(kindsAndTargets ...string) string {
	var b strings.Builder
	b.WriteString(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for i := 0; i < len(kindsAndTargets); i += 2 {
		fmt.Fprintf(&b, `<Relationship Id="r%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`, i/2+1, kindsAndTargets[i], kindsAndTargets[i+1])
	}
	return b.String() + `</Relationships>`
}

const wordSpace = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`

func wordParts(body string) []Entry {
	return office("word/document.xml", Entry{"word/document.xml", head + `<w:document ` + wordSpace + `><w:body>` + body + `</w:body></w:document>`})
}

// Word returns a text document with the content of its body.
func Word(body string) string { return Zip(wordParts(body)) }

// Paragraph returns a paragraph of a text document.
func Paragraph(text string) string { return `<w:p><w:r><w:t>` + text + `</w:t></w:r></w:p>` }

func run(properties, text string) string {
	return `<w:r><w:rPr>` + properties + `</w:rPr><w:t>` + text + `</w:t></w:r>`
}

func styled(style, text string) string {
	return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

// listed returns a paragraph of a list of numbering.
func listed(list, level, text string) string {
	return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + list + `"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

// numbering has the list 1, with numbers and letters, and the list 2, with points.
const numbering = `<w:numbering ` + wordSpace + `><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>` +
	`<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>` +
	`<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>` +
	`<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>`

const openSpaces = `xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"` +
	` xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:presentation="p" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:fo="f"`

func openParts(text string) []Entry { return openBody("text", text) }

func openBody(body, text string, styles ...string) []Entry {
	return []Entry{
		{"mimetype", "application/vnd.oasis.opendocument.text"},
		{"content.xml", head + `<office:document-content ` + openSpaces + `>` + strings.Join(styles, "") + `<office:body><office:` + body + `>` + text + `</office:` + body + `></office:body></office:document-content>`},
	}
}

// styledParts is openParts with the styles H and W of hidden and white text, and the style L of lists.
func styledParts(text string) []Entry {
	return openBody("text", text, `<office:automatic-styles><style:style style:name="H"><style:text-properties text:display="none"/></style:style><style:style style:name="W"><style:text-properties fo:color="#FFFFFF"/></style:style>`+
		`<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="a" text:display-levels="2"/></text:list-style></office:automatic-styles>`)
}

// SlideParts returns the entries of a presentation with a text on each slide.
func SlideParts(slides ...string) []Entry {
	const spaces = `xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	var parts []Entry
	var order strings.Builder
	var targets []string
	for i, text := range slides {
		name := fmt.Sprintf("slides/slide%d.xml", len(slides)-i) // the names are not in the order of the slides
		targets = append(targets, "slide", name)
		fmt.Fprintf(&order, `<p:sldId id="%d" r:id="r%d"/>`, 256+i, i+1)
		parts = append(parts,
			Entry{"ppt/" + name, head + `<p:sld ` + spaces + `><p:txBody><a:p><a:r><a:t>` + text + `</a:t></a:r><a:fld><a:t>99</a:t></a:fld></a:p></p:txBody></p:sld>`},
		)
	}
	parts = append(parts,
		Entry{"ppt/presentation.xml", head + `<p:presentation ` + spaces + `><p:sldIdLst>` + order.String() + `</p:sldIdLst></p:presentation>`},
		Entry{"ppt/_rels/presentation.xml.rels", head + relations(targets...)},
	)
	return office("ppt/presentation.xml", parts...)
}

func bookParts(chapters ...string) []Entry {
	var items, order strings.Builder
	parts := []Entry{
		{"mimetype", "application/epub+zip"},
		{"META-INF/container.xml", head + `<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>`},
	}
	for i, body := range chapters {
		fmt.Fprintf(&items, `<item id="c%d" href="chapter%%20%d.xhtml" media-type="application/xhtml+xml"/>`, i, i)
		fmt.Fprintf(&order, `<itemref idref="c%d"/>`, i)
		parts = append(parts, Entry{fmt.Sprintf("OEBPS/chapter %d.xhtml", i), `<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body>` + body + `</body></html>`})
	}
	return append(parts, Entry{"OEBPS/content.opf", head + `<package xmlns="http://www.idpf.org/2007/opf"><manifest>` + items.String() + `</manifest><spine>` + order.String() + `</spine></package>`})
}

// without returns parts without those with some names.
func without(parts []Entry, names ...string) []Entry {
	return slices.DeleteFunc(slices.Clone(parts), func(e Entry) bool { return slices.Contains(names, e.Name) })
}

// replaced returns parts with another text in all bodies.
func replaced(parts []Entry, old, new string) []Entry {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Body = strings.ReplaceAll(parts[i].Body, old, new)
	}
	return parts
}

// formulas returns a workbook with numbers in B1 and B2, and formulas without values, as libraries write them.
func formulas(cells map[string]string) string {
	f := excelize.NewFile()
	must(f.SetCellValue("Sheet1", "B1", 1))
	must(f.SetCellValue("Sheet1", "B2", 2))
	for name, formula := range cells {
		must(f.SetCellFormula("Sheet1", name, formula))
	}
	var b bytes.Buffer
	must(f.Write(&b))
	return b.String()
}

// remarks returns a workbook with a date, a comment, a text box, and a sheet that is not shown.
func remarks() string {
	f := excelize.NewFile()
	const dates = 14 // the format of dates of the country of the reader
	style, err := f.NewStyle(&excelize.Style{NumFmt: dates})
	must(err)
	must(f.SetCellValue("Sheet1", "A1", 45000))
	must(f.SetCellStyle("Sheet1", "A1", "A1", style))
	must(f.AddComment("Sheet1", excelize.Comment{Cell: "B2", Author: "Ada", Paragraph: []excelize.RichTextRun{{Text: "Why?"}}}))
	must(f.AddShape("Sheet1", &excelize.Shape{Cell: "C3", Type: "rect", Paragraph: []excelize.RichTextRun{{Text: "A box"}}}))
	_, err = f.NewSheet("Lists")
	must(err)
	must(f.SetCellValue("Lists", "A1", "x"))
	must(f.SetSheetVisible("Lists", false))
	var b bytes.Buffer
	must(f.Write(&b))
	return b.String()
}

// Workbook returns a workbook with sheets of rows.
func Workbook(sheets map[string][][]any, order ...string) string {
	f := excelize.NewFile()
	for i, name := range order {
		if i == 0 {
			must(f.SetSheetName("Sheet1", name))
		} else if _, err := f.NewSheet(name); err != nil {
			panic(err)
		}
		for row, cells := range sheets[name] {
			must(f.SetSheetRow(name, fmt.Sprintf("A%d", row+1), &cells))
		}
	}
	var b bytes.Buffer
	must(f.Write(&b))
	return b.String()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// PDF returns a PDF with one page for each text. The trailer may have more entries.
func PDF(trailer string, pages ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), kids.String()))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for i, text := range pages {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		stream := "BT /F 12 Tf 72 720 Td (" + text + ") Tj ET"
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, trailer, start)
	return b.String()
}

// unembedded returns a PDF with a text of a script of East Asia, whose font it does not contain. The text is UTF-16.
func unembedded(collection, encoding, text string) string {
	of := PDF("", "x")
	var codes strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&codes, "%04X", unit)
	}
	of = strings.ReplaceAll(of, "(x) Tj", "<"+codes.String()+"> Tj")
	of = strings.ReplaceAll(of, "/Subtype /Type1 /BaseFont /Helvetica", "/Subtype /Type0 /BaseFont /Gothic /Encoding /"+encoding+" /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Gothic /CIDSystemInfo << /Registry (Adobe) /Ordering ("+collection+") /Supplement 2 >> /FontDescriptor << /Type /FontDescriptor /FontName /Gothic /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80 >> >>]")
	return strings.Split(of, "xref\n")[0] + "trailer\n<< /Root 1 0 R >>\n"
}

// OnePage returns a PDF with one page; empty: without text.
func OnePage(text string) string { return PDF("", text) }

// lockedPDF returns a PDF with an unknown password.
func lockedPDF() string {
	return PDF("/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <"+
		strings.Repeat("a1", 32)+"> /U <"+strings.Repeat("b2", 32)+"> >>", "secret")
}

// ole returns the beginning of an encrypted Office document.
func ole() string { return "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + strings.Repeat("\x00", 600) }

// Picture returns a black picture.
func Picture(format string, width, height int) string {
	return PictureOf(format, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White}))
}

// PictureOf encodes a picture.
func PictureOf(format string, of image.Image) string {
	var b bytes.Buffer
	switch format {
	case "png":
		must(png.Encode(&b, of))
	case "jpeg":
		must(jpeg.Encode(&b, of, &jpeg.Options{Quality: 100}))
	case "gif":
		must(gif.Encode(&b, of, nil))
	case "bmp":
		must(bmp.Encode(&b, of))
	case "tiff":
		must(tiff.Encode(&b, of, nil))
	case "webp":
		b.WriteString(PlainWebP(of.Bounds().Dx(), of.Bounds().Dy(), of.At(0, 0)))
	}
	return b.String()
}

// corners names the colors of the corners of a picture, in the same order.
func corners(of image.Image) string {
	b := of.Bounds()
	var names strings.Builder
	for _, at := range []image.Point{{b.Min.X, b.Min.Y}, {b.Max.X - 1, b.Min.Y}, {b.Min.X, b.Max.Y - 1}, {b.Max.X - 1, b.Max.Y - 1}} {
		r, g, blue, _ := of.At(at.X, at.Y).RGBA()
		const half = 1 << 15
		switch {
		case r > half && g > half && blue > half:
			names.WriteByte('w')
		case r > half:
			names.WriteByte('r')
		case g > half:
			names.WriteByte('g')
		case blue > half:
			names.WriteByte('b')
		default:
			names.WriteByte('-')
		}
	}
	return names.String()
}

// animation returns a GIF of two pictures. The first one is a corner, the second one fills the whole.
func animation(width, height int) string {
	palette := color.Palette{color.Transparent, CornerColors[0], CornerColors[2]}
	first, second := image.NewPaletted(image.Rect(0, 0, width/2, height/2), palette), image.NewPaletted(image.Rect(0, 0, width, height), palette)
	for i := range first.Pix {
		first.Pix[i] = 1
	}
	for i := range second.Pix {
		second.Pix[i] = 2
	}
	var b bytes.Buffer
	must(gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{first, second}, Delay: []int{0, 0}, Config: image.Config{Width: width, Height: height, ColorModel: palette}}))
	return b.String()
}

// sized changes the size in the header of a picture, so that it declares more pixels than it has.
func sized(format, picture string, width, height int) string {
	raw := []byte(picture)
	switch format {
	case "png": // in its first chunk, which has a checksum
		binary.BigEndian.PutUint32(raw[16:], uint32(width))
		binary.BigEndian.PutUint32(raw[20:], uint32(height))
		binary.BigEndian.PutUint32(raw[29:], crc32.ChecksumIEEE(raw[12:29]))
	case "gif":
		binary.LittleEndian.PutUint16(raw[6:], uint16(width))
		binary.LittleEndian.PutUint16(raw[8:], uint16(height))
	case "jpeg": // in the segment SOF0
		at := bytes.Index(raw, []byte{0xFF, 0xC0})
		binary.BigEndian.PutUint16(raw[at+5:], uint16(height))
		binary.BigEndian.PutUint16(raw[at+7:], uint16(width))
	case "webp":
		return PlainWebP(width, height, color.White)
	}
	return string(raw)
}

// Noise returns a picture that cannot be compressed.
func Noise(width, height int, transparent bool) image.Image {
	canvas := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(canvas.Pix)
	for i := 3; i < len(canvas.Pix) && !transparent; i += 4 {
		canvas.Pix[i] = 255
	}
	return canvas
}

func utf16Text(order binary.AppendByteOrder, mark bool, text string) string {
	var raw []byte
	if mark {
		raw = order.AppendUint16(raw, 0xFEFF)
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		raw = order.AppendUint16(raw, unit)
	}
	return string(raw)
}

func encodedAs(in encoding.Encoding, text string) string {
	raw, err := in.NewEncoder().String(text)
	must(err)
	return raw
}

func symlinks(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }

// cut returns the first part of a content.
func cut(content string) string { return content[:len(content)*2/3] }

// twoPages adds an orientation to a TIFF picture, and a second page, which is the same as the first one.
func twoPages(picture string, orientation uint16) string {
	order := binary.LittleEndian
	raw := []byte(picture)
	at := order.Uint32(raw[4:])
	count := order.Uint16(raw[at:])
	entries := string(raw[at+2 : at+2+12*uint32(count)])
	position := strings.Index(entries, string([]byte{0x15, 0x01})) / 12 * 12 // the tags are ordered: before SamplesPerPixel
	tag := string(order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, 0x0112), 3), 1)) + string(order.AppendUint16(nil, orientation)) + "\x00\x00"
	entries = entries[:position] + tag + entries[position:]
	directory := string(order.AppendUint16(nil, count+1)) + entries
	first, second := uint32(len(raw)), uint32(len(raw)+len(directory)+4)
	order.PutUint32(raw[4:], first)
	return string(raw) + directory + string(order.AppendUint32(nil, second)) + directory + "\x00\x00\x00\x00"
}
