package extract

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	htmlcharset "golang.org/x/net/html/charset"
)

// maxRTF limits a document, most of which may be pictures in hexadecimal digits.
const maxRTF = 64 << 20

// readRTF reads a document in Rich Text Format, of any version.
func readRTF(t *text, c content) error {
	raw, err := io.ReadAll(io.LimitReader(c.reader(), maxRTF))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimLeft(raw, "\uFEFF \r\n"), []byte(`{\rtf`)) {
		return errDamaged
	}
	t.truncated = c.size > maxRTF
	r := &rtfReader{prose: prose{text: t}, raw: raw, page: "1252", fonts: map[int]string{}}
	r.state.skip = 1
	if err := r.read(); err != nil {
		return err
	}
	r.flushBytes()
	if strings.TrimSpace(r.line.String()) == "" {
		return nil
	}
	return r.flush()
}

// rtfState is what a group inherits from the group around it.
type rtfState struct {
	ignored bool   // the group is not text
	fonts   bool   // the group is the table of fonts
	hidden  bool   // the text is not shown
	aside   bool   // the text is of a header or a footer, which interrupts a paragraph
	font    string // code page of the font
	skip    int    // how many characters follow a \u for old programs
}

type rtfReader struct {
	prose
	raw   []byte
	at    int
	page  string // code page of the document
	fonts map[int]string
	font  int // that the table of fonts describes

	state  rtfState
	groups []rtfState
	bytes  []byte   // of the text, in a code page
	units  []uint16 // of the text, in UTF-16
	toSkip int      // characters after a \u
}

// unreadGroups are the groups without text of the document.
var unreadGroups = []string{
	"colortbl", "stylesheet", "info", "pict", "objdata", "objclass", "objname", "themedata", "colorschememapping", "datastore", "latentstyles", "listtable",
	"listoverridetable", "rsidtbl", "generator",
	"xmlnstbl", "fldinst", "filetbl", "revtbl", "mmathPr", "bkmkstart", "bkmkend", "pgdsctbl", "nonesttables", "template", "operator", "company", "title", "author",
	"comment", "keywords", "doccomm", "wgrffmtfilter",
}

func (r *rtfReader) read() error {
	for r.at < len(r.raw) {
		c := r.raw[r.at]
		r.at++
		switch c {
		case '{':
			r.flushBytes()
			if len(r.groups) >= maxDepth {
				return errComplex
			}
			r.groups = append(r.groups, r.state)
		case '}':
			r.flushBytes()
			r.isFlat = false
			if last := len(r.groups) - 1; last >= 0 {
				wasAside := r.state.aside
				if r.state, r.groups = r.groups[last], r.groups[:last]; wasAside && !r.state.aside {
					r.endBox()
				}
			}
			r.toSkip = 0
		case '\\':
			if err := r.control(); err != nil {
				return err
			}
		case '\r', '\n', 0:
		default:
			r.byte(c)
		}
	}
	return nil
}

// control reads a control word or sign, after its \.
func (r *rtfReader) control() error {
	if r.at >= len(r.raw) {
		return nil
	}
	c := r.raw[r.at]
	r.at++
	if !isLatin(c) {
		return r.sign(c)
	}
	start := r.at - 1
	for r.at < len(r.raw) && isLatin(r.raw[r.at]) {
		r.at++
	}
	word, digits := string(r.raw[start:r.at]), r.at
	if r.at < len(r.raw) && r.raw[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.raw) && r.raw[r.at] >= '0' && r.raw[r.at] <= '9' {
		r.at++
	}
	number, err := strconv.Atoi(string(r.raw[digits:r.at]))
	hasNumber := err == nil
	if r.at < len(r.raw) && r.raw[r.at] == ' ' {
		r.at++
	}
	return r.word(word, number, hasNumber)
}

func isLatin(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (r *rtfReader) sign(c byte) error {
	switch c {
	case '\'':
		const digits = 2
		if r.at+digits <= len(r.raw) {
			if value, err := strconv.ParseUint(string(r.raw[r.at:r.at+digits]), 16, 8); err == nil {
				r.byte(byte(value))
			}
			r.at += digits
		}
	case '*':
		r.state.ignored = true // a group that programs may ignore
	case '~':
		r.character('\u00A0')
	case '_':
		r.character('\u2011')
	case '\\', '{', '}':
		r.byte(c)
	case '\r', '\n':
		return r.endParagraph()
	}
	return nil
}

// characters are the words for single characters.
var characters = map[string]rune{
	"tab": '\t', "line": '\n', "emdash": '—', "endash": '–', "bullet": '•', "lquote": '‘', "rquote": '’', "ldblquote": '“', "rdblquote": '”', "emspace": ' ', "enspace": ' ',
}

func (r *rtfReader) word(word string, number int, hasNumber bool) error {
	switch word {
	case "bin":
		r.at = min(len(r.raw), r.at+max(0, number))
	case "ansicpg":
		r.page = strconv.Itoa(number)
	case "mac":
		r.page = "10000"
	case "pc", "pca":
		r.page = "437"
	case "uc":
		r.state.skip = number
	case "u":
		if len(r.bytes) > 0 { // not between the halves of a character
			r.flushBytes()
		}
		r.units = append(r.units, uint16(number)) // it is signed
		r.toSkip = r.state.skip
	case "fonttbl":
		r.flushBytes()
		r.state.fonts, r.state.ignored = true, true
	case "f":
		r.flushBytes()
		r.font, r.state.font = number, r.fonts[number]
	case "fcharset":
		if r.state.fonts {
			r.fonts[r.font] = charsetPages[number]
		}
	case "plain":
		r.flushBytes()
		r.state.hidden = false
	case "v":
		r.flushBytes()
		r.state.hidden = !hasNumber || number != 0
	case "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf":
		if !r.state.ignored && !r.state.aside {
			r.flushBytes()
			r.box()
			r.state.aside = true
		}
	case "deleted":
		r.state.ignored = true
	case "par", "sect", "page":
		return r.endParagraph()
	case "cell", "nestcell":
		r.character('\t')
	case "row", "nestrow":
		return r.endParagraph()
	case "footnote":
		if !r.state.ignored {
			r.character(' ')
		}
	default:
		switch c, is := characters[word]; {
		case is:
			r.character(c)
		case slices.Contains(unreadGroups, word):
			r.state.ignored = true
		}
	}
	return nil
}

// byte adds a byte of the text.
func (r *rtfReader) byte(c byte) {
	if r.toSkip > 0 {
		r.toSkip--
		return
	}
	r.flushUnits()
	if !r.state.ignored {
		r.bytes = append(r.bytes, c)
	}
}

func (r *rtfReader) character(c rune) {
	r.flushBytes()
	r.toSkip = 0
	r.add(string(c))
}

func (r *rtfReader) flushUnits() {
	if len(r.units) > 0 {
		text := string(utf16.Decode(r.units))
		r.units = r.units[:0]
		r.add(text)
	}
}

// flushBytes decodes the bytes of the text.
func (r *rtfReader) flushBytes() {
	r.flushUnits()
	if len(r.bytes) == 0 {
		return
	}
	page := r.page
	if r.state.font != "" {
		page = r.state.font
	}
	text := string(r.bytes)
	if from, _ := htmlcharset.Lookup(codePages[page]); from != nil {
		if decoded, err := from.NewDecoder().Bytes(r.bytes); err == nil {
			text = string(decoded)
		}
	}
	r.bytes = r.bytes[:0]
	r.add(text)
}

func (r *rtfReader) add(text string) {
	switch {
	case r.state.ignored:
	case r.state.hidden:
		r.hide(text)
	default:
		r.line.WriteString(text)
	}
}

func (r *rtfReader) endParagraph() error {
	r.flushBytes()
	if r.state.ignored {
		return nil
	}
	if strings.TrimSpace(r.line.String()) == "" && r.b.Len() == 0 {
		r.line.Reset()
		return nil
	}
	return r.flush()
}

// charsetPages maps the character sets of fonts to code pages.
var charsetPages = map[int]string{
	77: "10000", 128: "932", 129: "949", 134: "936", 136: "950", 161: "1253", 162: "1254", 163: "1258", 177: "1255", 178: "1256", 186: "1257", 204: "1251", 222: "874", 238: "1250", 255: "437",
}

// codePages maps code pages to the names of encodings.
var codePages = map[string]string{
	"10000": "macintosh", "866": "ibm866", "932": "shift_jis", "936": "gbk", "949": "euc-kr", "950": "big5", "874": "windows-874", "65001": "utf-8",
	"1250": "windows-1250", "1251": "windows-1251", "1252": "windows-1252", "1253": "windows-1253", "1254": "windows-1254", "1255": "windows-1255",
	"1256": "windows-1256", "1257": "windows-1257", "1258": "windows-1258",
}
