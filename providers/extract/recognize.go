package extract

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/timelimit"
	"turnstone/providers/child"
)

// tesseract recognizes text in pictures. It is optional, and has a package of data for each language.
const tesseract = "tesseract"

const (
	// maxRecognized limits the pages of a PDF whose text is recognized, each of which takes seconds.
	maxRecognized = 30
	// maxTable limits what tesseract prints: a line for each word, and more pages than one have no more than a page.
	maxTable = 4 << 20
	// recognizedSide is the longer side of a picture in which text is recognized: 250 dots per inch of a page.
	recognizedSide = 2800
)

// recognitionTime limits the recognition in a content. The job that waits for it has 2 minutes.
var recognitionTime = timelimit.Of(45 * time.Second)

// languageData are the names of tesseract's data for languages; see the names of its Debian packages, tesseract-ocr-….
var languageData = map[string]string{
	"ar": "ara", "bg": "bul", "bn": "ben", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est", "fa": "fas", "fi": "fin",
	"fr": "fra", "he": "heb", "hi": "hin", "hr": "hrv", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "ko": "kor", "lt": "lit", "lv": "lav", "nb": "nor", "nl": "nld",
	"no": "nor", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk", "sl": "slv", "sr": "srp", "sv": "swe", "ta": "tam", "th": "tha", "tr": "tur", "uk": "ukr",
	"ur": "urd", "vi": "vie", "zh": "chi_sim", "zh-hant": "chi_tra", "zh-tw": "chi_tra", "zh-hk": "chi_tra",
}

// dataFor returns the data that is used for an account with a language: that of the language and of English, as far as it is
// installed. Without either it is the first that is.
func dataFor(language string, installed []string) string {
	language = strings.ToLower(language)
	base, _, _ := strings.Cut(language, "-")
	own := languageData[language] // Traditional Chinese has data of its own
	if !slices.Contains(installed, own) {
		own = languageData[base]
	}
	var chosen []string
	for _, data := range []string{own, languageData["en"]} {
		if slices.Contains(installed, data) && !slices.Contains(chosen, data) {
			chosen = append(chosen, data)
		}
	}
	if len(chosen) == 0 && len(installed) > 0 {
		chosen = installed[:1]
	}
	return strings.Join(chosen, "+")
}

// installedData returns the languages whose data tesseract finds.
func installedData(ctx context.Context, program string) []string {
	printed, err := exec.CommandContext(ctx, program, "--list-langs").Output() // found by name
	if err != nil {
		return nil
	}
	_, list, _ := strings.Cut(string(printed), "\n") // after a title
	return slices.DeleteFunc(strings.Fields(list), func(name string) bool { return name == "osd" || name == "snum" })
}

// recognizer recognizes the text of pictures in a language.
type recognizer struct {
	*Extractor
	program, data string
	deadline      time.Time
}

// recognizer returns a recognizer for an account with a language; nil if this computer has none.
func (e *Extractor) recognizer(ctx context.Context, language string) *recognizer {
	program, err := exec.LookPath(tesseract)
	if err != nil {
		return nil
	}
	data := dataFor(language, installedData(ctx, program))
	if data == "" {
		return nil
	}
	return &recognizer{e, program, data, time.Now().Add(recognitionTime)}
}

// picture adds the text in a picture to what was read of it.
func (r *recognizer) picture(ctx context.Context, of *os.File, mediaType string, x *protocol.Extraction) {
	prepared, err := r.print(ctx, of, prepare, mediaType, "", maxDrawn)
	if err != nil {
		return
	}
	t := &text{}
	if r.write(ctx, t, prepared) == nil && t.b.Len() > 0 {
		t.note(protocol.NoteRecognized, 1)
		x.State, x.Text, x.Notes = protocol.TextDone, t.b.String(), append(x.Notes, t.notes...)
	}
}

// pages recognizes the text of those pages of a PDF that have none, and returns the whole.
func (r *recognizer) pages(ctx context.Context, of *os.File, x *protocol.Extraction) *protocol.Extraction {
	drawer, err := exec.LookPath(pdftoppm)
	if err != nil {
		return x
	}
	texts := make([]string, x.Pages)
	for _, b := range x.Blocks {
		texts[b.Page-1] = x.Text[b.Offset : b.Offset+b.Length]
	}
	t := &text{truncated: x.Truncated, notes: slices.DeleteFunc(x.Notes, func(n protocol.TextNote) bool { return n.Kind == protocol.NotePagesNoText })}
	tried := 0
	for i, page := range texts {
		if t.begin(protocol.BlockPage, "") != nil {
			break
		}
		if page == "" && tried < maxRecognized && time.Now().Before(r.deadline) {
			tried++
			drawn, err := r.print(ctx, of, drawScan, strconv.Itoa(i+1), drawer, maxDrawn)
			before := t.b.Len()
			if err == nil && r.write(ctx, t, drawn) == nil && t.b.Len() > before {
				t.note(protocol.NoteRecognized, 1)
			}
			continue
		}
		if t.write(page) != nil {
			break
		}
	}
	return t.pagesWithText()
}

// print runs a child and returns what it prints, at most most bytes.
func (r *recognizer) print(ctx context.Context, of *os.File, task Task, argument, program string, most int64) ([]byte, error) {
	if _, err := of.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return r.printed(ctx, of, task, argument, program, most)
}

// write adds the text of a picture.
func (r *recognizer) write(ctx context.Context, t *text, picture []byte) error {
	spool, err := child.Spool(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	table, err := r.print(ctx, spool, recognize, r.data, r.program, maxTable)
	if err != nil {
		return err
	}
	return t.joined(wordsIn(string(table)))
}

// wordsIn returns the text in the table that tesseract prints, a line for each line. Words of which it is not sure are left
// out, and so is a text with few sure words: photos of trees have some.
func wordsIn(table string) string {
	const (
		columns           = 12
		sure, sureOnWhole = 40, 65 // percent
		fewest            = 2
	)
	var b strings.Builder
	place, words, certainty := "", 0, 0.0
	for row := range strings.Lines(table) {
		cells := strings.SplitN(strings.TrimRight(row, "\n"), "\t", columns)
		if len(cells) < columns || cells[0] != "5" { // not a word
			continue
		}
		confidence, err := strconv.ParseFloat(cells[10], 64)
		if err != nil || confidence < sure || strings.TrimSpace(cells[11]) == "" {
			continue
		}
		words, certainty = words+1, certainty+confidence
		line, block := strings.Join(cells[1:5], " "), strings.Join(cells[1:4], " ")
		switch {
		case place == "":
		case !strings.HasPrefix(place, block+" "):
			b.WriteString("\n\n")
		case place != line:
			b.WriteString("\n")
		default:
			b.WriteString(" ")
		}
		place = line
		b.WriteString(strings.TrimSpace(cells[11]))
	}
	if words < fewest || certainty/float64(words) < sureOnWhole {
		return ""
	}
	return b.String()
}

// The programs of libheif that decode HEIC and AVIF. They are optional.
var heifDecoders = []string{"heif-dec", "heif-convert"}

// decodeHEIF returns a picture in HEIC or AVIF as PNG; nil if it cannot be decoded. The program writes to a file whose name says
// the format, so the child gets a folder with a link that has such a name and leads to its output.
func (e *Extractor) decodeHEIF(ctx context.Context, of *os.File) (png []byte, isInstalled bool, err error) {
	program := ""
	for _, name := range heifDecoders {
		if found, err := exec.LookPath(name); err == nil && program == "" {
			program = found
		}
	}
	if program == "" {
		return nil, false, nil
	}
	folder, err := os.MkdirTemp("", "turnstone-child-*")
	if err != nil {
		return nil, true, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it has links only
	const output = "/proc/self/fd/1"
	for _, name := range []string{"picture.png", "picture-1.png"} { // the second one of a content of several pictures
		if err := os.Symlink(output, filepath.Join(folder, name)); err != nil {
			return nil, true, err
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil { // the links have no secret
		return nil, true, err
	}
	png, err = e.printed(ctx, of, decodeHEIF, filepath.Join(folder, "picture.png"), program, maxDecoded)
	return png, true, err
}
