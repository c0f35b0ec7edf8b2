package extracttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"turnstone/protocol"
)

// The limits of texts.
const (
	MaxText   = 4 << 20
	MaxBlocks = 5000
)

// Row is a content, and what is read of it.
type Row struct {
	Name, MediaType, Content string
	Want                     string // a summary; of a real file a part of it or of the text
}

// Is reports whether a file with the content was read as the row wants it.
func (r *Row) Is(x *protocol.Extraction) bool {
	want, _ := r.Uploaded()
	return Summary(x) == want
}

// Has is Is for a real file.
func (r *Row) Has(x *protocol.Extraction) bool {
	const few = 2 // the test files of some modules have invalid characters
	return (strings.Contains(Summary(x), r.Want) || strings.Contains(x.Text, r.Want)) && strings.Count(x.Text, "\uFFFD") <= few
}

// chart is a chart of Office documents with the values that it shows.
const chart = `<c:chartSpace xmlns:c="c" xmlns:a="a"><c:title><a:p><a:t>Height</a:t></a:p></c:title><c:ser><c:tx><c:strCache><c:pt><c:v>North</c:v></c:pt></c:strCache></c:tx><c:cat><c:strCache><c:pt><c:v>Mon</c:v></c:pt><c:pt><c:v>Tue</c:v></c:pt></c:strCache></c:cat><c:val><c:numCache><c:formatCode>0</c:formatCode><c:pt><c:v>3</c:v></c:pt><c:pt><c:v>4</c:v></c:pt></c:numCache></c:val></c:ser></c:chartSpace>`

// Rows are contents of all types, each with what is special about it.
func Rows() []Row { return slices.Concat(documents(), mails(), richTexts(), outlookMails()) }

const (
	docx    = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	xlsx    = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	pptx    = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	odt     = "application/vnd.oasis.opendocument.text"
	ods     = "application/vnd.oasis.opendocument.spreadsheet"
	odp     = "application/vnd.oasis.opendocument.presentation"
	epub    = "application/epub+zip"
	pdf     = "application/pdf"
	eml     = "message/rfc822"
	mhtml   = "multipart/related"
	outlook = "application/vnd.ms-outlook"
	rtf     = "application/rtf"
	ipynb   = "application/x-ipynb+json"
)

// documents are contents of all types.
func documents() []Row {
	simpleWord, simpleBook := wordParts(Paragraph("Tides")), bookParts("<h1>One</h1><p>Tides</p>", "<p>Ebb</p>")
	simpleOpen, simpleSlides := openParts("<text:p>Tides</text:p>"), SlideParts("Tides", "Ebb")
	simpleSheet := Workbook(map[string][][]any{"A": {{"x", 1, 2.5}, {}, {nil, "y"}}, "B": {{true}}}, "A", "B")
	deep := strings.Repeat("<w:x>", 300) + strings.Repeat("</w:x>", 300)
	entities := head + `<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]><w:document ` + wordSpace + `><w:body>&b;</w:body></w:document>`
	large := strings.Repeat("0", 8<<20)
	manyEntries := func(parts []Entry) []Entry {
		for i := range 10_001 {
			parts = append(parts, Entry{fmt.Sprintf("x/%d", i), ""})
		}
		return parts
	}
	encrypted := Entry{"META-INF/encryption.xml", head + `<encryption><EncryptedData><CipherData><CipherReference URI="OEBPS/chapter%200.xhtml"/></CipherData></EncryptedData></encryption>`}
	fonts := Entry{"META-INF/encryption.xml", head + `<encryption><EncryptedData><CipherData><CipherReference URI="OEBPS/font.otf"/></CipherData></EncryptedData></encryption>`}
	locked := Entry{"META-INF/manifest.xml", head + `<manifest:manifest xmlns:manifest="m"><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>`}
	stored := PictureOf("jpeg", Quarters(1200, 800))
	longText := strings.Repeat("Tides come twice a day. ", MaxText/20)
	return []Row{
		{"pdf", pdf, PDF("", "Tides", "Ebb"), `done jpeg 396x512 wwww of 2 page 1 "Tides\n" page 2 "Ebb\n"`},
		{"pdf with an empty page", pdf, PDF("", "Tides", "", "Ebb"), `done [pages_no_text 1] jpeg 396x512 wwww of 3 page 1 "Tides\n" page 3 "Ebb\n"`},
		{"pdf without text", pdf, OnePage(""), `no_text no_text jpeg 395x512 wwww of 1`},
		{"pdf without text, of two pages", pdf, PDF("", "", ""), `no_text no_text [pages_not_shown 1] jpeg 395x512 wwww of 2`},
		{"pdf without text, of ten pages", pdf, PDF("", make([]string, 10)...), `no_text no_text [pages_not_shown 9] jpeg 395x512 wwww of 10`},
		{"pdf, more pages than are kept", pdf, PDF("", slices.Repeat([]string{"x"}, MaxBlocks+1)...), fmt.Sprintf(`done truncated jpeg 396x512 wwww of %d %d bytes, %d blocks`, MaxBlocks, 2*MaxBlocks, MaxBlocks)},
		{"pdf, as many pages as are kept", pdf, PDF("", slices.Repeat([]string{"x"}, MaxBlocks)...), fmt.Sprintf(`done jpeg 396x512 wwww of %d %d bytes, %d blocks`, MaxBlocks, 2*MaxBlocks, MaxBlocks)},
		{"pdf, Japanese without its font", pdf, unembedded("Japan1", "UniJIS-UTF16-H", "潮汐の表"), `done jpeg 396x512 wwww of 1 page 1 "潮汐の表\n"`},
		{"pdf, Chinese without its font", pdf, unembedded("GB1", "UniGB-UTF16-H", "潮汐表"), `done jpeg 396x512 wwww of 1 page 1 "潮汐表\n"`},
		{"pdf, traditional Chinese without its font", pdf, unembedded("CNS1", "UniCNS-UTF16-H", "潮汐"), `done jpeg 396x512 wwww of 1 page 1 "潮汐\n"`},
		{"pdf, Korean without its font", pdf, unembedded("Korea1", "UniKS-UTF16-H", "조석표"), `done jpeg 396x512 wwww of 1 page 1 "조석표\n"`},
		{"pdf, the directory is cut off", pdf, strings.Split(OnePage("Tides"), "startxref")[0], `done jpeg 396x512 wwww of 1 page 1 "Tides\n"`},
		{"pdf, cut", pdf, OnePage("Tides")[:60], `failed damaged`},
		{"pdf, encrypted", pdf, lockedPDF(), `failed encrypted`},
		{"pdf, only its first line", pdf, "%PDF-1.7\n", `failed damaged`},
		{"pdf, a text", pdf, "Tides", `failed damaged`},
		{"pdf, a picture", pdf, Picture("png", 3, 2), `failed damaged`},
		{"pdf, empty", pdf, "", `failed damaged`},
		{"pdf, references in a circle", pdf, strings.ReplaceAll(OnePage("Tides"), "/Kids [4 0 R ]", "/Kids [2 0 R ]"), `failed damaged`},
		{"pdf, a page is missing", pdf, strings.Replace(PDF("", "Tides", "Ebb"), "4 0 R 6 0 R ]", "4 0 R 9 0 R ]", 1), `done [missing_parts 1] jpeg 396x512 wwww of 1 page 1 "Tides\n"`},
		{"pdf, a content that ends early", pdf, strings.Replace(PDF("", "Tides", "Ebb"), "(Ebb) Tj ET", "(Ebb  Tj ET", 1), `done [pages_no_text 1] [missing_parts 2] jpeg 396x512 wwww of 2 page 1 "Tides\n"`},
		{"pdf, an attachment", pdf, strings.Replace(OnePage("Tides"), "/Catalog ", "/Catalog /Names << /EmbeddedFiles << /Names [(a.csv) << /Type /Filespec /F (a.csv) /EF << /F 5 0 R >> >>] >> >> ", 1), `done [unread_members 1] jpeg 396x512 wwww of 1 page 1 "Tides\n"`},
		{"pdf, many pages", pdf, PDF("", slices.Repeat([]string{"Tides"}, 200)...), `done jpeg 396x512 wwww of 200 1200 bytes, 200 blocks`},

		{"docx", docx, Word(Paragraph("Tides") + Paragraph("come &amp; go")), `done "Tides\ncome & go\n"`},
		{"docx, headings", docx, Word(`<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>`), `done "## Tides\n"`},
		{"docx, a table", docx, Word(`<w:tbl><w:tr><w:tc>` + Paragraph("a") + `</w:tc><w:tc>` + Paragraph("b") + `</w:tc></w:tr></w:tbl>`), `done "a \tb\n"`},
		{"docx, tabs, breaks, deleted text and fields", docx, Word(`<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:delText>no</w:delText><w:instrText>PAGE</w:instrText></w:r></w:p>`), `done "a\tb\nc\n"`},
		{"docx, a text for old versions", docx, Word(`<w:p><mc:AlternateContent xmlns:mc="m"><mc:Choice><w:t>a</w:t></mc:Choice><mc:Fallback><w:t>a</w:t></mc:Fallback></mc:AlternateContent></w:p>`), `done "a\n"`},
		{"docx, footnotes", docx, Zip(append(wordParts(Paragraph("Tides")),
			Entry{"word/_rels/document.xml.rels", relations("footnotes", "footnotes.xml")},
			Entry{"word/footnotes.xml", `<w:footnotes ` + wordSpace + `>` + Paragraph("Moon") + `</w:footnotes>`})), `done "Tides\nMoon\n"`},
		{"docx, moved text", docx, Word(`<w:p><w:moveFrom><w:r><w:t>a</w:t></w:r></w:moveFrom></w:p><w:p><w:moveTo><w:r><w:t>a</w:t></w:r></w:moveTo></w:p>`), `done "\na\n"`},
		{
			"docx, headers, footers, notes and comments", docx, Zip(append(wordParts(`<w:p><w:r><w:t>Tides</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>`),
				Entry{"word/_rels/document.xml.rels", relations("header", "header1.xml", "header", "header2.xml", "footer", "footer1.xml", "footnotes", "footnotes.xml", "comments", "comments.xml", "header", "missing.xml")},
				Entry{"word/header1.xml", `<w:hdr ` + wordSpace + `>` + Paragraph("Draft") + `</w:hdr>`}, Entry{"word/header2.xml", `<w:hdr ` + wordSpace + `>` + Paragraph("Draft") + `</w:hdr>`},
				Entry{"word/footer1.xml", `<w:ftr ` + wordSpace + `>` + Paragraph("Secret") + `</w:ftr>`},
				Entry{"word/footnotes.xml", `<w:footnotes ` + wordSpace + `><w:footnote w:type="separator" w:id="0">` + Paragraph("-") + `</w:footnote><w:footnote w:id="2">` + Paragraph("Moon") + `</w:footnote></w:footnotes>`},
				Entry{"word/comments.xml", `<w:comments ` + wordSpace + `><w:comment w:id="1" w:author="Ada">` + Paragraph("Why?") + `</w:comment></w:comments>`})),
			`done [missing_parts 1] "Draft\nTides[^2]\nSecret\n[^2]: Moon\n[Comment by Ada] Why?\n"`,
		},
		{"docx, a text box", docx, Word(`<w:p><w:r><w:t>Before</w:t></w:r><w:r><w:txbxContent>` + Paragraph("one") + Paragraph("two") + `</w:txbxContent></w:r><w:r><w:t> after</w:t></w:r></w:p>`), `done "Before after\none\ntwo\n"`},
		{"docx, a text box in a cell", docx, Word(`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t><w:txbxContent>` + Paragraph("box") + `</w:txbxContent></w:r></w:p></w:tc><w:tc>` + Paragraph("b") + `</w:tc></w:tr></w:tbl>`), `done "a \tb\nbox\n"`},
		{
			"docx, lists", docx, Zip(append(wordParts(listed("1", "0", "one")+listed("1", "1", "deeper")+listed("1", "1", "deepest")+listed("1", "0", "two")+listed("2", "0", "point")+listed("1", "1", "again")),
				Entry{"word/_rels/document.xml.rels", relations("numbering", "numbering.xml")}, Entry{"word/numbering.xml", numbering})),
			`done "1. one\n  1.a) deeper\n  1.b) deepest\n2. two\n- point\n  2.a) again\n"`,
		},
		{
			"docx, headings of another language", docx, Zip(append(wordParts(styled("berschrift2", "Gezeiten")+styled("Titel", "Meer")+styled("Eigene", "Ebbe")+styled("Standard", "Text")),
				Entry{"word/_rels/document.xml.rels", relations("styles", "styles.xml")},
				Entry{"word/styles.xml", `<w:styles ` + wordSpace + `><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style><w:style w:styleId="Titel"><w:name w:val="Title"/></w:style><w:style w:styleId="Eigene"><w:basedOn w:val="berschrift2"/></w:style><w:style w:styleId="Standard"><w:name w:val="Normal"/></w:style></w:styles>`})),
			`done "## Gezeiten\n# Meer\n## Ebbe\nText\n"`,
		},
		{"docx, hidden text", docx, Word(`<w:p>` + run(`<w:vanish/>`, "x") + run(`<w:vanish w:val="0"/>`, "a") + run(`<w:color w:val="FFFFFF"/>`, "x") + run(`<w:color w:val="FFFFFF"/><w:shd w:fill="000000"/>`, "b") + run(`<w:sz w:val="2"/>`, "x") + `</w:p>`), `done [hidden 3] "ab\n"`},
		{"docx, another document in it", docx, Zip(append(wordParts(Paragraph("Tides")), Entry{"word/_rels/document.xml.rels", relations("aFChunk", "part.html")}, Entry{"word/part.html", "x"})), `done [unread_members 1] "Tides\n"`},
		{
			"docx, a chart, a diagram and an endnote", docx, Zip(append(wordParts(`<w:p><w:r><w:t>Tides</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="2"/></w:r></w:p>`),
				Entry{"word/_rels/document.xml.rels", relations("chart", "charts/c.xml", "diagramData", "diagrams/d.xml", "footnotes", "footnotes.xml", "endnotes", "endnotes.xml")},
				Entry{"word/charts/c.xml", chart}, Entry{"word/diagrams/d.xml", `<dgm:dataModel xmlns:dgm="d" xmlns:a="a"><a:p><a:t>Moon</a:t></a:p></dgm:dataModel>`},
				Entry{"word/footnotes.xml", `<w:footnotes ` + wordSpace + `><w:footnote w:id="2">` + Paragraph("foot") + `</w:footnote></w:footnotes>`},
				Entry{"word/endnotes.xml", `<w:endnotes ` + wordSpace + `><w:endnote w:id="2">` + Paragraph("end") + `</w:endnote></w:endnotes>`})),
			`done "Tides[^2][^e2]\nMoon\nHeight\nNorth\nMon\tTue\n3\t4\n[^2]: foot\n[^e2]: end\n"`,
		},
		{"docx, readings of characters", docx, Word(`<w:p><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>しお</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>潮</w:t></w:r></w:rubyBase></w:ruby></w:r><w:r><w:t>と月</w:t></w:r></w:p>`), `done "潮(しお)と月\n"`},
		{"docx, symbols", docx, Word(`<w:p><w:r><w:sym w:font="Wingdings" w:char="F0FC"/><w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Symbol" w:char="0057"/><w:sym w:font="Arial" w:char="00E9"/><w:sym w:font="Webdings" w:char="F031"/></w:r></w:p>`), `done "✓αΩé` + "\uFFFD" + `\n"`},
		{
			"docx, formulas", docx, Word(`<w:p xmlns:m="m"><m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>c</m:t></m:r></m:den></m:f><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>` +
				`<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub><m:r><m:t>i</m:t></m:r></m:sub><m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e><m:r><m:t>i</m:t></m:r></m:e></m:d></m:e></m:nary>` +
				`<m:d><m:e><m:m><m:mr><m:e><m:r><m:t>1</m:t></m:r></m:e><m:e><m:r><m:t>2</m:t></m:r></m:e></m:mr></m:m></m:e></m:d><m:rad><m:deg/><m:e><m:r><m:t>y</m:t></m:r></m:e></m:rad></m:oMath></w:p>`),
			`done "(a+b)/(c)x^(2)∑_(i)^(n)[i](1 2 ; )√(y)\n"`,
		},
		{"docx, in UTF-16", docx, Zip(office("word/document.xml", Entry{"word/document.xml", encodedAs(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), `<?xml version="1.0" encoding="UTF-16"?><w:document `+wordSpace+`><w:body>`+Paragraph("Größe")+`</w:body></w:document>`)})), `done "Größe\n"`},
		{"docx, names of Windows", docx, Zip([]Entry{{`_rels\.rels`, simpleWord[1].Body}, {`word\document.xml`, simpleWord[2].Body}}), `done "Tides\n"`},
		{"docx without text", docx, Word(""), `done`},
		{"docx, cut", docx, cut(Zip(simpleWord)), `failed damaged`},
		{"docx, its XML is cut", docx, Zip(office("word/document.xml", Entry{"word/document.xml", head + `<w:document ` + wordSpace + `><w:body><w:p>`})), `failed damaged`},
		{"docx, the text is missing", docx, Zip(office("word/document.xml")), `failed damaged`},
		{"docx, encrypted", docx, ole(), `failed encrypted`},
		{"docx, encrypted entries", docx, EncryptedZip(simpleWord), `failed encrypted`},
		{"docx, a workbook", docx, simpleSheet, `failed damaged`},
		{"docx, a presentation", docx, Zip(simpleSlides), `failed damaged`},
		{"docx, another archive", docx, Zip([]Entry{{"a.txt", "a"}}), `failed damaged`},
		{"docx, a text", docx, "Tides", `failed damaged`},
		{"docx, nested", docx, Word(deep), `failed too_complex`},
		{"docx, entities", docx, Zip(office("word/document.xml", Entry{"word/document.xml", entities})), `failed too_complex`},
		{"docx, an entity of HTML", docx, Word(Paragraph("&nbsp;")), `failed damaged`},
		{"docx, a bomb", docx, Zip(append(simpleWord[:len(simpleWord):len(simpleWord)], Entry{"x", large})), `failed too_complex`},
		{"docx, a bomb in the text", docx, Word(Paragraph(large)), `failed too_complex`},
		{"docx, many entries", docx, Zip(manyEntries(simpleWord[:len(simpleWord):len(simpleWord)])), `failed too_complex`},
		{"docx, links in the archive", docx, Zip(simpleWord, symlinks), `failed damaged`},
		{"docx, two entries of a name", docx, Zip(append(simpleWord[:len(simpleWord):len(simpleWord)], simpleWord[2])), `failed damaged`},
		{"docx, invalid characters", docx, Word("<w:p><w:r><w:t>a\x01b</w:t></w:r></w:p>"), `failed damaged`},

		{"odt", odt, Zip(openParts(`<text:h text:outline-level="1">Tides</text:h><text:p>come<text:s text:c="2"/>and<text:tab/>go</text:p>`)), `done "# Tides\ncome  and\tgo\n"`},
		{"odt, a table", odt, Zip(openParts(`<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>`)), `done "a \tb\n"`},
		{"odt, deleted text", odt, Zip(openParts(`<text:tracked-changes><text:p>no</text:p></text:tracked-changes><text:p>yes</text:p>`)), `done "yes\n"`},
		{"odt, a frame and a note", odt, Zip(openParts(`<text:p>Before<draw:frame><draw:text-box><text:p>one</text:p><text:p>two</text:p></draw:text-box></draw:frame> after<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Moon</text:p></text:note-body></text:note>.<office:annotation><dc:creator>x</dc:creator><text:p>Why?</text:p></office:annotation></text:p><text:p>End</text:p>`)), `done "Before after[^1].\none\ntwo\n[^1]: Moon\n[Comment] Why?\nEnd\n"`},
		{"odt, a frame on the page", odt, Zip(openParts(`<draw:frame><draw:text-box><text:p>one</text:p></draw:text-box></draw:frame><text:p>two</text:p>`)), `done "one\ntwo\n"`},
		{"odt, lists", odt, Zip(styledParts(`<text:list text:style-name="L"><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deeper</text:p></text:list-item><text:list-item><text:p>deepest</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>two</text:p><text:p>more</text:p></text:list-item></text:list><text:list text:style-name="L"><text:list-item><text:p>again</text:p></text:list-item></text:list><text:list text:style-name="L" text:continue-numbering="true"><text:list-item><text:p>next</text:p></text:list-item></text:list><text:list><text:list-item><text:p>point</text:p></text:list-item></text:list>`)), `done "1. one\n  1.a deeper\n  1.b deepest\n2. two\nmore\n1. again\n2. next\n- point\n"`},
		{"odt, hidden text", odt, Zip(styledParts(`<text:p>a<text:span text:style-name="H">x<text:span>y</text:span></text:span>b<text:span text:style-name="W">x</text:span></text:p><text:p text:style-name="H">x</text:p><table:table><table:table-row><table:table-cell><text:p><text:span text:style-name="W">c</text:span></text:p></table:table-cell></table:table-row></table:table>`)), `done [hidden 2] "ab\n\nc\n"`},
		{"odt, a header", odt, Zip(append(openParts("<text:p>Tides</text:p>"), Entry{"styles.xml", head + `<office:document-styles ` + openSpaces + `><office:master-styles><style:master-page><style:header><text:p>Draft</text:p></style:header></style:master-page></office:master-styles></office:document-styles>`})), `done "Draft\nTides\n"`},
		{"odt, readings of characters", odt, Zip(openParts(`<text:p><text:ruby><text:ruby-base>潮</text:ruby-base><text:ruby-text>しお</text:ruby-text></text:ruby>と</text:p>`)), `done "潮(しお)と\n"`},
		{"odt, a section that is not shown", odt, Zip(openParts(`<text:section text:display="none"><text:p>no</text:p></text:section><text:p>yes</text:p>`)), `done [hidden 1] "\nyes\n"`},
		{"ods, a comment", ods, Zip(openBody("spreadsheet", `<table:table table:name="A"><table:table-row><table:table-cell><office:annotation><text:p>Why?</text:p></office:annotation><text:p>x</text:p></table:table-cell></table:table-row></table:table>`)), `done of 1 sheet 1 (A) "[Comment] Why? x\n"`},
		{"odt, its type is deflated and last", odt, Zip(append(simpleOpen[1:2:2], simpleOpen[0])), `done "Tides\n"`},
		{"ods", ods, Zip(openBody("spreadsheet", `<table:table table:name="A"><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell table:number-columns-repeated="2"/><table:table-cell><text:p>1</text:p><text:p>2</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16000"/></table:table-row><table:table-row table:number-rows-repeated="1000000"><table:table-cell/></table:table-row></table:table><table:table table:name="B"><table:table-row><table:table-cell table:number-columns-repeated="2"><text:p>y</text:p></table:table-cell></table:table-row></table:table>`)), `done of 2 sheet 1 (A) "x\t\t\t1 2\n" sheet 2 (B) "y\ty\n"`},
		{"ods, a text", ods, Zip(simpleOpen), `failed damaged`},
		{"odp", odp, Zip(openBody("presentation", `<draw:page><draw:frame><draw:text-box><text:p>Tides</text:p></draw:text-box></draw:frame><presentation:footer/><presentation:notes><draw:frame><draw:text-box><text:p>Speak</text:p></draw:text-box></draw:frame></presentation:notes></draw:page><draw:page><draw:frame><draw:text-box><text:p>Ebb</text:p></draw:text-box></draw:frame></draw:page>`)), `done of 2 slide 1 "Tides\nSpeak\n" slide 2 "Ebb\n"`},
		{"odt, cut", odt, cut(Zip(simpleOpen)), `failed damaged`},
		{"odt, encrypted", odt, Zip(append(simpleOpen, locked)), `failed encrypted`},
		{"odt, a bomb", odt, Zip(openParts("<text:p>" + large + "</text:p>")), `failed too_complex`},
		{"odt, a Word document", odt, Zip(simpleWord), `failed damaged`},

		{"pptx", pptx, Zip(simpleSlides), `done of 2 slide 1 "Tides\n" slide 2 "Ebb\n"`},
		{"pptx, notes", pptx, Zip(append(SlideParts("Tides"),
			Entry{"ppt/slides/_rels/slide1.xml.rels", relations("notesSlide", "../notesSlides/n.xml")},
			Entry{"ppt/notesSlides/n.xml", `<p:notes xmlns:p="p" xmlns:a="a"><a:p><a:t>Speak</a:t></a:p></p:notes>`})), `done of 1 slide 1 "Tides\nSpeak\n"`},
		{"pptx, a text for old versions", pptx, Zip(replaced(simpleSlides, "<a:r><a:t>Tides</a:t></a:r>", `<mc:AlternateContent xmlns:mc="m"><mc:Choice><a:t>Tides</a:t></mc:Choice><mc:Fallback><a:t>Tides</a:t></mc:Fallback></mc:AlternateContent>`)), `done of 2 slide 1 "Tides\n" slide 2 "Ebb\n"`},
		{"pptx, a diagram and a comment", pptx, Zip(append(SlideParts("Tides"),
			Entry{"ppt/slides/_rels/slide1.xml.rels", relations("comments", "../comments/c.xml", "diagramData", "../diagrams/data1.xml", "chart", "missing.xml")},
			Entry{"ppt/comments/c.xml", `<p:cmLst xmlns:p="p"><p:cm><p:text>Why?</p:text></p:cm></p:cmLst>`},
			Entry{"ppt/diagrams/data1.xml", `<dgm:dataModel xmlns:dgm="d" xmlns:a="a"><a:p><a:t>Moon</a:t></a:p></dgm:dataModel>`})), `done [missing_parts 1] of 1 slide 1 "Tides\nMoon\n[Comment] Why?\n"`},
		{"pptx, a chart and a formula", pptx, Zip(append(replaced(SlideParts("Tides"), "<a:t>Tides</a:t>", `<a:t>E=</a:t><m:oMath xmlns:m="m"><m:sSup><m:e><m:t>c</m:t></m:e><m:sup><m:t>2</m:t></m:sup></m:sSup></m:oMath>`),
			Entry{"ppt/slides/_rels/slide1.xml.rels", relations("chart", "../charts/c.xml")}, Entry{"ppt/charts/c.xml", chart})), `done of 1 slide 1 "E=c^(2)\nHeight\nNorth\nMon\tTue\n3\t4\n"`},
		{"pptx, a slide that is not shown", pptx, Zip(replaced(simpleSlides, "<p:sld ", `<p:sld show="0" `)), `done [hidden 2] of 2`},
		{"pptx, a slide is missing", pptx, Zip(without(simpleSlides, "ppt/slides/slide1.xml")), `done [missing_parts 1] of 2 slide 1 "Tides\n"`},
		{"pptx without slides", pptx, Zip(SlideParts()), `done`},
		{"pptx, cut", pptx, cut(Zip(simpleSlides)), `failed damaged`},
		{"pptx, encrypted", pptx, EncryptedZip(simpleSlides), `failed encrypted`},
		{"pptx, a bomb", pptx, Zip(SlideParts(large)), `failed too_complex`},
		{"pptx, a Word document", pptx, Zip(simpleWord), `failed damaged`},

		{"xlsx", xlsx, simpleSheet, `done of 2 sheet 1 (A) "x\t1\t2.5\n\ty\n" sheet 2 (B) "TRUE\n"`},
		{"xlsx, formulas without a value", xlsx, formulas(map[string]string{"A1": "SUM(B1:B2)", "C2": "A1*2"}), `done [no_values 2] of 1 sheet 1 (Sheet1) "=SUM(B1:B2)\t1\n\t2\t=A1*2\n"`},
		{"xlsx, dates, a comment, a text box and a sheet that is not shown", xlsx, remarks(), `done [hidden 1] of 2 sheet 1 (Sheet1) "2023-03-15\n[Comment by Ada on B2] Why?\nA box\n"`},
		{"xlsx, cut", xlsx, cut(simpleSheet), `failed damaged`},
		{"xlsx, encrypted", xlsx, ole(), `failed encrypted`},
		{"xlsx, a bomb", xlsx, Zip([]Entry{{"xl/workbook.xml", large}}), `failed too_complex`},
		{"xlsx, a Word document", xlsx, Zip(simpleWord), `failed damaged`},
		{"xlsx, a text", xlsx, "a,b", `failed damaged`},

		{"epub", epub, Zip(simpleBook), `done of 2 chapter 1 (One) "# One\n\nTides\n" chapter 2 (T) "Ebb\n"`},
		{"epub, a chapter is missing", epub, Zip(without(simpleBook, "OEBPS/chapter 1.xhtml")), `done [missing_parts 1] of 1 chapter 1 (One) "# One\n\nTides\n"`},
		{"epub, all chapters are missing", epub, Zip(without(simpleBook, "OEBPS/chapter 0.xhtml", "OEBPS/chapter 1.xhtml")), `failed damaged`},
		{"epub, a page that is a picture with words", epub, Zip(replaced(replaced(bookParts("<p>Tides</p>"), "application/xhtml+xml", "image/svg+xml"), "<p>Tides</p>", `<svg xmlns="http://www.w3.org/2000/svg"><text>Ebb</text></svg>`)), `done of 1 chapter 1 (T) "Ebb\n"`},
		{"epub, no container", epub, Zip(without(simpleBook, "META-INF/container.xml", "mimetype")), `done of 2 chapter 1 (One) "# One\n\nTides\n" chapter 2 (T) "Ebb\n"`},
		{"epub, the type of old books", epub, Zip(replaced(simpleBook, "application/xhtml+xml", "text/x-oeb1-document")), `done of 2 chapter 1 (One) "# One\n\nTides\n" chapter 2 (T) "Ebb\n"`},
		{"epub, names in another case", epub, Zip(replaced(simpleBook, `href="chapter`, `href="Chapter`)), `done of 2 chapter 1 (One) "# One\n\nTides\n" chapter 2 (T) "Ebb\n"`},
		{"epub, references into chapters", epub, Zip(replaced(simpleBook, `.xhtml" media`, `.xhtml#top" media`)), `done of 2 chapter 1 (One) "# One\n\nTides\n" chapter 2 (T) "Ebb\n"`},
		{"epub, encrypted fonts", epub, Zip(append(bookParts("<p>Tides</p>"), fonts)), `done of 1 chapter 1 (T) "Tides\n"`},
		{"epub, encrypted", epub, Zip(append(bookParts("<p>Tides</p>"), encrypted)), `failed encrypted`},
		{"epub, cut", epub, cut(Zip(simpleBook)), `failed damaged`},
		{"epub, a bomb", epub, Zip(bookParts(large)), `failed too_complex`},
		{"epub, a Word document", epub, Zip(simpleWord), `failed damaged`},

		{"html", "text/html", `<!DOCTYPE html><title>T</title><style>p{}</style><script>alert(1)</script><h1>Tides</h1><p>come <b>and</b> <a href="https://e.org/">go</a>`, `done "# Tides\n\ncome **and** [go](https://e.org/)\n"`},
		{"html, a dangerous link", "text/html", `<a href="javascript:alert(1)">go</a>`, `done "[go]()\n"`},
		{"html, a table", "text/html", `<table><tr><th>a<th>b<tr><td>1<td>2</table>`, `done "| a | b |\n|---|---|\n| 1 | 2 |\n"`},
		{"html, another encoding", "text/html", "<meta charset=iso-8859-1><p>caf\xE9", `done "café\n"`},
		{"html, UTF-8 with a late charset", "text/html", "<!-- " + strings.Repeat("x", 3000) + " --><meta charset=utf-8><p>café 潮汐", `done "café 潮汐\n"`},
		{"html, UTF-8 whose beginning is ASCII", "text/html", "<p>" + strings.Repeat("x ", 30) + "<!-- " + strings.Repeat("x", 3000) + " --><p>潮汐", "done \"" + strings.TrimSpace(strings.Repeat("x ", 30)) + `\n\n潮汐\n"`},
		{"html, UTF-8 that claims another charset", "text/html", "<meta charset=iso-8859-1><p>潮汐", `done "潮汐\n"`},
		{"html, a late charset", "text/html", "<!-- " + strings.Repeat("x", 3000) + ` --><meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><p>` + encodedAs(charmap.Windows1251, "Имя"), `done "Имя\n"`},
		{"html, without a charset", "text/html", "<p>" + encodedAs(japanese.ShiftJIS, "お世話になっております。来週の会議の資料です。"), `done [encoding shift_jis] "お世話になっております。来週の会議の資料です。\n"`},
		{"xml, its declared charset", "application/xml", `<?xml version="1.0" encoding="koi8-r"?><a>` + encodedAs(charmap.KOI8R, "Имя") + "</a>", `done "<?xml version=\"1.0\" encoding=\"koi8-r\"?><a>Имя</a>"`},
		{"html, cut", "text/html", `<p>Tides<di`, `done "Tides\n"`},
		{"html, nested", "text/html", strings.Repeat("<div>", 10_000) + "Tides <b>come</b><script>no</script><p>go", `done [plain 1] "Tides come\ngo\n"`},
		{"html, 600 elements that are not closed", "text/html", strings.Repeat("<b><div>", 600) + "Tides", `done [plain 1] "Tides\n"`},
		{"html, hidden text", "text/html", `<p>a<span style="display: none">x</span><p hidden>x<p style="COLOR:#FFF">x<p style="font-size:0px">x<font color=white>x</font><p style="visibility:hidden !important"></p><p style="color:#fff;background:#000">b`, `done [hidden 4] "a\n\nb\n"`},
		{"html, white text of a style sheet", "text/html", `<style>p{background:black}</style><p style="color:white">a`, `done "a\n"`},

		{"text", "text/plain", "Tides\r\ncome\rand go\n", `done "Tides\ncome\nand go\n"`},
		{"text, empty", "text/plain", "", `done`},
		{"text, long", "text/plain", longText, fmt.Sprintf("done truncated %d bytes, 0 blocks", MaxText)},
		{"text, Latin-1", "text/plain", "caf\xE9", `done [encoding windows-1252] "café"`},
		{"text, Shift-JIS", "text/plain", encodedAs(japanese.ShiftJIS, "お世話になっております。"), `done [encoding shift_jis] "お世話になっております。"`},
		{"text, GB 18030", "text/csv", encodedAs(simplifiedchinese.GB18030, "姓名,地址\n张三,北京市"), `done [encoding gb18030] "姓名,地址\n张三,北京市"`},
		{"text, UTF-8 with a mark", "text/plain", "\xEF\xBB\xBFcafé", `done "café"`},
		{"text, UTF-16, little-endian", "text/plain", utf16Text(binary.LittleEndian, true, "潮汐"), `done "潮汐"`},
		{"text, UTF-16, big-endian", "text/plain", utf16Text(binary.BigEndian, true, "café"), `done "café"`},
		{"text, UTF-16 without a mark", "text/plain", utf16Text(binary.LittleEndian, false, "Tides come"), `done "Tides come"`},
		{"text, invalid bytes and NUL", "text/plain", "潮汐\xFF\x00\x1B.", "done \"潮汐\uFFFD\uFFFD .\""},
		{"csv", "text/csv", "a,b\n1,2\n", `done "a,b\n1,2\n"`},
		{"json", "application/json", `{"a": 1}`, `done "{\"a\": 1}"`},
		{"markdown", "text/markdown", "# Tides", `done "# Tides"`},
		{"source code", "text/x-go", "package a", `done "package a"`},
		{"svg", "image/svg+xml", "<svg/>", `done "<svg/>"`},
		{"yaml", "application/yaml", "a: 1", `done "a: 1"`},

		{"png", "image/png", PictureOf("png", Quarters(1200, 800)), `none 1200x800 jpeg 512x341 rgbw`},
		{"png, small", "image/png", Picture("png", 3, 2), `none 3x2 jpeg 3x2 ----`},
		{"png, one pixel wide", "image/png", Picture("png", 1, 5000), `none 1x5000 jpeg 1x512 ----`},
		{"png, transparent", "image/png", PictureOf("png", image.NewNRGBA(image.Rect(0, 0, 1200, 800))), `none 1200x800 png 512x341 ----`},
		{"png, 16 bits", "image/png", PictureOf("png", image.NewGray16(image.Rect(0, 0, 600, 300))), `none 600x300 jpeg 512x256 ----`},
		{"png, cut", "image/png", cut(PictureOf("png", Quarters(1200, 800))), `failed damaged`},
		{"png, its header is cut", "image/png", Picture("png", 3, 2)[:20], `failed damaged`},
		{"png, it declares too many pixels", "image/png", sized("png", Picture("png", 3, 2), 60_000, 60_000), `none 60000x60000`},
		{"png, it declares more pixels than it has", "image/png", sized("png", Picture("png", 3, 2), 6000, 6000), `failed damaged`},
		{"png, a line", "image/png", sized("png", Picture("png", 3, 2), 1, 1<<31-1), `none 1x2147483647`},
		{"png, a gif", "image/png", Picture("gif", 3, 2), `failed damaged`},
		{"jpeg", "image/jpeg", PictureOf("jpeg", Quarters(800, 1200)), `none 800x1200 jpeg 341x512 rgbw`},
		{"jpeg, gray", "image/jpeg", PictureOf("jpeg", image.NewGray(image.Rect(0, 0, 600, 300))), `none 600x300 jpeg 512x256 ----`},
		{"jpeg, cut within its data", "image/jpeg", cut(PictureOf("jpeg", Quarters(800, 1200))), `none [missing_parts 1] 800x1200 jpeg 341x512 rgbb`},
		{"jpeg, cut within its header", "image/jpeg", PictureOf("jpeg", Quarters(800, 1200))[:100], `failed damaged`},
		{"jpeg, it declares too many pixels", "image/jpeg", sized("jpeg", Picture("jpeg", 3, 2), 65_000, 65_000), `none 65000x65000`},
		{"jpeg, it declares more pixels than it has", "image/jpeg", sized("jpeg", Picture("jpeg", 3, 2), 6000, 6000), `failed damaged`},
		{"jpeg, a png", "image/jpeg", Picture("png", 3, 2), `failed damaged`},
		{"jpeg, a text", "image/jpeg", "Tides", `failed damaged`},
		{"jpeg, orientation 1", "image/jpeg", Turned(stored, 1, binary.BigEndian), `none 1200x800 jpeg 512x341 rgbw`},
		{"jpeg, orientation 2", "image/jpeg", Turned(stored, 2, binary.BigEndian), `none 1200x800 jpeg 512x341 grwb`},
		{"jpeg, orientation 3", "image/jpeg", Turned(stored, 3, binary.LittleEndian), `none 1200x800 jpeg 512x341 wbgr`},
		{"jpeg, orientation 4", "image/jpeg", Turned(stored, 4, binary.BigEndian), `none 1200x800 jpeg 512x341 bwrg`},
		{"jpeg, orientation 5", "image/jpeg", Turned(stored, 5, binary.BigEndian), `none 800x1200 jpeg 341x512 rbgw`},
		{"jpeg, orientation 6", "image/jpeg", Turned(stored, 6, binary.LittleEndian), `none 800x1200 jpeg 341x512 brwg`},
		{"jpeg, orientation 7", "image/jpeg", Turned(stored, 7, binary.BigEndian), `none 800x1200 jpeg 341x512 wgbr`},
		{"jpeg, orientation 8", "image/jpeg", Turned(stored, 8, binary.BigEndian), `none 800x1200 jpeg 341x512 gwrb`},
		{"jpeg, orientation 9", "image/jpeg", Turned(stored, 9, binary.BigEndian), `none 1200x800 jpeg 512x341 rgbw`},
		{"jpeg, its EXIF is cut", "image/jpeg", "\xFF\xD8\xFF\xE1\x00\x10Exif\x00\x00MM\x00*\x00\x00\x00\xFF" + stored[2:], `none 1200x800 jpeg 512x341 rgbw`},
		{"gif", "image/gif", PictureOf("gif", Quarters(1200, 800)), `none 1200x800 jpeg 512x341 rgbw`},
		{"gif, an animation", "image/gif", animation(1200, 800), `none 1200x800 png 512x341 r---`},
		{"gif, cut", "image/gif", cut(PictureOf("gif", Noise(120, 80, false))), `failed damaged`},
		{"gif, it declares too many pixels", "image/gif", sized("gif", Picture("gif", 3, 2), 65_000, 65_000), `none 65000x65000`},
		{"gif, a webp", "image/gif", Picture("webp", 3, 2), `failed damaged`},
		{"webp", "image/webp", PlainWebP(1200, 800, CornerColors[2]), `none 1200x800 jpeg 512x341 bbbb`},
		{"webp, transparent", "image/webp", PlainWebP(1200, 800, color.NRGBA{B: 255, A: 200}), `none 1200x800 png 512x341 bbbb`},
		{"webp, cut", "image/webp", cut(Picture("webp", 3, 2)), `failed damaged`},
		{"webp, it has too many pixels", "image/webp", PlainWebP(16_000, 16_000, color.White), `none 16000x16000`},
		{"webp, a jpeg", "image/webp", Picture("jpeg", 3, 2), `failed damaged`},
		{"webp, an animation", "image/webp", AnimatedWebP(1200, 800, PlainWebP(600, 400, CornerColors[0]), PlainWebP(600, 400, CornerColors[2])), `none 1200x800 png 512x341 r---`},
		{"webp, an animation that is cut", "image/webp", cut(AnimatedWebP(1200, 800, PlainWebP(600, 400, CornerColors[0]))), `failed damaged`},
		{"webp, an animation with a large frame", "image/webp", AnimatedWebP(1200, 800, PlainWebP(16_000, 16_000, CornerColors[0])), `failed damaged`},
		{"webp, orientation 6", "image/webp", WithOrientation(PlainWebP(1200, 800, CornerColors[2]), 6), `none 800x1200 jpeg 341x512 bbbb`},
		{"png, orientation 3", "image/png", WithOrientation(PictureOf("png", Quarters(1200, 800)), 3), `none 1200x800 jpeg 512x341 wbgr`},
		{"png, orientation 8", "image/png", WithOrientation(PictureOf("png", Quarters(1200, 800)), 8), `none 800x1200 jpeg 341x512 gwrb`},
		{"jpeg without its end", "image/jpeg", strings.TrimSuffix(PictureOf("jpeg", Quarters(800, 1200)), "\xFF\xD9"), `none 800x1200 jpeg 341x512 rgbw`},
		{"bmp", "image/bmp", PictureOf("bmp", Quarters(1200, 800)), `none 1200x800 jpeg 512x341 rgbw`},
		{"bmp, cut", "image/bmp", cut(PictureOf("bmp", Quarters(1200, 800))), `failed damaged`},
		{"tiff", "image/tiff", PictureOf("tiff", Quarters(1200, 800)), `none 1200x800 jpeg 512x341 rgbw`},
		{"tiff, cut", "image/tiff", cut(PictureOf("tiff", Quarters(1200, 800))), `failed damaged`},
		{"tiff, two pages and an orientation", "image/tiff", twoPages(PictureOf("tiff", Quarters(1200, 800)), 6), `none [first_page 2] 800x1200 jpeg 341x512 brwg`},
		{"sound", "audio/mpeg", "ID3", `none`},
		{"archive", "application/zip", Zip(simpleWord), `none`},
		{"unknown type", "application/x-unknown", "x", `none`},
	}
}

// Summary describes a result in one line: the state and the reason, the size of a picture, its thumbnail, and the
// blocks with their texts, or the text.
func Summary(x *protocol.Extraction) string {
	var b strings.Builder
	b.WriteString(string(x.State))
	if x.Reason != "" {
		b.WriteString(" " + string(x.Reason))
	}
	if x.Truncated {
		b.WriteString(" truncated")
	}
	for _, one := range x.Notes {
		switch {
		case one.Kind == protocol.NoteEncoding:
			fmt.Fprintf(&b, " [encoding %s]", one.Value)
		case one.Value != "":
			fmt.Fprintf(&b, " [%s %s]", one.Kind, one.Value)
		default:
			fmt.Fprintf(&b, " [%s %d]", one.Kind, one.Count)
		}
	}
	if x.Width > 0 {
		fmt.Fprintf(&b, " %dx%d", x.Width, x.Height)
	}
	if x.Thumbnail != nil {
		small, format, err := image.Decode(bytes.NewReader(x.Thumbnail))
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, " %s %dx%d %s", format, small.Bounds().Dx(), small.Bounds().Dy(), corners(small))
	}
	if x.Pages > 0 {
		fmt.Fprintf(&b, " of %d", x.Pages)
	}
	const longest = 400
	switch {
	case len(x.Text) > longest:
		fmt.Fprintf(&b, " %d bytes, %d blocks", len(x.Text), len(x.Blocks))
	case len(x.Blocks) > 0:
		for _, one := range x.Blocks {
			fmt.Fprintf(&b, " %s %d", one.Kind, one.Page)
			if one.Title != "" {
				fmt.Fprintf(&b, " (%s)", one.Title)
			}
			fmt.Fprintf(&b, " %q", x.Text[one.Offset:one.Offset+one.Length])
		}
	case x.Text != "":
		fmt.Fprintf(&b, " %q", x.Text)
	}
	return b.String()
}
