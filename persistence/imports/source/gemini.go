package source

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/html"

	"turnstone/protocol"
)

// An export of Gemini lists activities: a prompt with its answer each. It does not say which belong together, so those of one
// sitting become one conversation.
const (
	sitting    = 30 * time.Minute // the longest time between two prompts of one
	maxSitting = 1000             // prompts
)

// activity is an element of the export.
type activity struct {
	is       bool // the element is an activity
	products string
	title    string
	at       time.Time
	answer   string // HTML
	files    []string
	bad      int // times that could not be read
}

// activityMember reads a member of an activity. is is false for another member.
func (d *decoder) activityMember(a *activity, name string) (is bool, err error) {
	switch name {
	case "header":
		var header text
		err := d.value(&header)
		a.products += " " + firstBytes(string(header), maxID)
		return true, err
	case "products":
		a.is = true
		var products []text
		err := d.value(&products)
		const most = 20
		for _, product := range products[:min(len(products), most)] {
			a.products += " " + firstBytes(string(product), maxID)
		}
		return true, err
	case "time":
		var at when
		err := d.value(&at)
		a.at = at.Time
		return true, err
	case "safeHtmlItem":
		a.is = true
		var items []struct {
			HTML text `json:"html"`
		}
		err := d.value(&items)
		var answer strings.Builder
		for _, item := range items {
			answer.WriteString(string(item.HTML))
		}
		a.answer = answer.String()
		return true, err
	case "attachedFiles", "imageFile":
		var files jsontext.Value
		err := d.value(&files)
		var names []text
		if files.Kind() != '[' {
			names = []text{text(valueOf(files))}
		} else if json.Unmarshal(files, &names, lenient) != nil {
			d.mismatches++
		}
		for _, name := range names {
			a.addFile(string(name))
		}
		return true, err
	case "subtitles":
		var lines []struct {
			URL text `json:"url"`
		}
		err := d.value(&lines)
		for _, line := range lines {
			a.addFile(string(line.URL))
		}
		return true, err
	case "activityControls", "titleUrl", "details":
		return true, d.skip()
	}
	return false, nil
}

// addFile adds a file that the activity names, once. An address on the web is none.
func (a *activity) addFile(name string) {
	if name != "" && !strings.Contains(name, "://") && !strings.HasPrefix(name, "//") && len(a.files) < maxNodes && !slices.Contains(a.files, name) {
		a.files = append(a.files, name)
	}
}

// attachedLine is what an export in English adds to a prompt with files.
var attachedLine = regexp.MustCompile(`(?:^|\s)(?:-\s*)?Attached (\d{1,3}) files?\.?\s*$`)

// countFiles cuts the number of the files off the prompt. Files that are counted, but not named, have no name.
func (a *activity) countFiles() {
	found := attachedLine.FindStringSubmatchIndex(a.title)
	if found == nil {
		return
	}
	count, _ := strconv.Atoi(a.title[found[2]:found[3]])
	a.title = strings.TrimSpace(a.title[:found[0]])
	for len(a.files) < count {
		a.files = append(a.files, "")
	}
}

// isGemini reports whether an activity is one of Gemini: the name is in the names of its products in every language.
func (a *activity) isGemini() bool {
	products := strings.ToLower(a.products)
	return strings.Contains(products, "gemini") || strings.Contains(products, "bard") || strings.TrimSpace(products) == "" && a.is
}

// activities joins the activities of a file to conversations.
type activities struct {
	now     time.Time
	files   *assets
	pending []activity
	size    int
	skipped int // activities that are no prompts, or of other products
}

// add adds an activity, and passes on the conversation that has ended with it.
func (g *activities) add(a activity, to func(*Conversation) error) error {
	a.countFiles()
	prompt, is := promptOf(a.title, a.answer != "")
	if !is || !a.isGemini() {
		g.skipped++
		return nil
	}
	a.title = prompt
	if n := len(g.pending); n > 0 {
		apart := g.pending[n-1].at.Sub(a.at).Abs()
		if apart > sitting || a.at.IsZero() || g.pending[n-1].at.IsZero() || n >= maxSitting || g.size > maxText/2 {
			if err := g.flush(to); err != nil {
				return err
			}
		}
	}
	g.pending, g.size = append(g.pending, a), g.size+len(a.title)+len(a.answer)
	return nil
}

// flush passes on the conversation of the pending activities.
func (g *activities) flush(to func(*Conversation) error) error {
	if len(g.pending) == 0 {
		return nil
	}
	slices.SortStableFunc(g.pending, func(x, y activity) int { return x.at.Compare(y.at) })
	c := &Conversation{Kind: protocol.ImportFromGemini, ID: g.pending[0].id(), CreatedAt: g.pending[0].at}
	previous := ""
	for i := range g.pending {
		a := &g.pending[i]
		id := a.id()
		prompt := Message{ID: id, Parent: previous, Role: protocol.RoleUser, Status: protocol.MessageComplete, CreatedAt: a.at, Parts: []protocol.Part{{Type: protocol.PartText, Text: a.title}}}
		for _, name := range a.files {
			c.attachNamed(&receiving{&prompt, g.files}, name)
		}
		c.note(protocol.ImportTimesUnreadable, a.bad)
		c.add(prompt)
		if previous = id; a.answer != "" {
			previous = id + " answer"
			c.add(Message{
				ID: previous, Parent: id, Role: protocol.RoleAssistant, Status: protocol.MessageComplete, CreatedAt: a.at,
				Parts: []protocol.Part{{Type: protocol.PartText, Text: markdown(a.answer)}},
			})
		}
		c.Active, c.UpdatedAt = previous, a.at
	}
	g.pending, g.size = nil, 0
	c.finish(g.now)
	return to(c)
}

// id identifies an activity: the export has nothing that does.
func (a *activity) id() string {
	sum := sha256.Sum256([]byte(a.at.Format(time.RFC3339Nano) + "\x00" + a.title))
	return hex.EncodeToString(sum[:16])
}

var (
	promptVerbs = []string{"Prompted with: ", "Asked Gemini: ", "Asked Bard: ", "Prompted ", "Asked ", "Said ", "Branched ", "Answered "}
	otherVerbs  = []string{"Created ", "Used ", "Added ", "Gave ", "Selected ", "Shared ", "Deleted ", "Viewed ", "Visited ", "Searched ", "Edited ", "Pinned ", "Renamed ", "Exported ", "Updated "}
)

// promptOf returns the text of a prompt from the title of an activity, which starts with a verb. In other languages than English, an
// activity with an answer is a prompt.
func promptOf(title string, answered bool) (prompt string, is bool) {
	title = strings.TrimSpace(strings.ReplaceAll(title, "\u00a0", " "))
	for _, verb := range promptVerbs {
		if prompt, is := strings.CutPrefix(title, verb); is {
			return strings.TrimSpace(prompt), true
		}
	}
	if !answered && slices.ContainsFunc(otherVerbs, func(verb string) bool { return strings.HasPrefix(title, verb) }) {
		return "", false
	}
	return title, title != "" && answered
}

// geminiTimes are the forms of the times in an HTML file in English.
var geminiTimes = []string{"Jan 2, 2006, 3:04:05 PM MST", "2 Jan 2006, 15:04:05 MST", "Jan 2, 2006, 3:04:05 PM", "2 Jan 2006, 15:04:05"}

// readHTML reads the activities of an HTML file: cells, each of which has the product and a cell with the prompt, the time and the answer.
func readHTML(from io.Reader, name string, files *assets, now time.Time, to Handler) error {
	g := &activities{now: now, files: files}
	tokens := html.NewTokenizer(from)
	tokens.SetMaxBuf(maxString)
	cell := &htmlCell{}
	yieldTo := func(c *Conversation) error { return deliver(c, to) }
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		if ended := cell.token(kind, tokens); ended != nil {
			if err := g.add(*ended, yieldTo); err != nil {
				return err
			}
		}
	}
	if ended := cell.end(); ended != nil {
		if err := g.add(*ended, yieldTo); err != nil {
			return err
		}
	}
	if err := g.flush(yieldTo); err != nil {
		return err
	}
	if err := tokens.Err(); err != nil && err != io.EOF { //nolint:errorlint // the tokenizer returns it as it is
		if err := to.Problem(protocol.ImportUnreadable, name, "The file is damaged: "+brief(err), 1); err != nil {
			return err
		}
	}
	return g.report(name, to)
}

// report reports the activities that were left out.
func (g *activities) report(name string, to Handler) error {
	if g.skipped == 0 {
		return nil
	}
	return to.Problem(protocol.ImportActivitiesSkipped, name, "", g.skipped)
}

// htmlCell is the cell of an HTML file that is read.
type htmlCell struct {
	activity
	in    string // the cell within it: header, content or another one
	depth int    // of the elements div in the content
	raw   strings.Builder
	read  bool // the content was read
}

// token follows the file. It returns the activity that has ended.
func (h *htmlCell) token(kind html.TokenType, from *html.Tokenizer) (ended *activity) {
	raw := string(from.Raw())
	name, hasAttributes := []byte(nil), false
	if kind == html.StartTagToken || kind == html.EndTagToken {
		name, hasAttributes = from.TagName()
	}
	if string(name) == "div" && kind == html.StartTagToken {
		switch class := classOf(from, hasAttributes); {
		case strings.Contains(class, "outer-cell"):
			ended = h.end()
			h.is = true
		case strings.Contains(class, "header-cell"):
			h.in = "header"
		case strings.Contains(class, "content-cell") && !h.read:
			h.in, h.read, h.depth = "content", true, 0
			return ended
		}
	}
	switch {
	case h.in == "header" && kind == html.TextToken:
		h.products = firstBytes(h.products+" "+html.UnescapeString(firstBytes(raw, maxID)), maxName)
	case h.in == "content":
		if string(name) == "div" {
			if h.depth += map[html.TokenType]int{html.StartTagToken: 1, html.EndTagToken: -1}[kind]; h.depth < 0 {
				h.in = ""
				return ended
			}
		}
		if h.raw.Len()+len(raw) > maxString {
			h.bad++ // the report has the activity
			return ended
		}
		h.raw.WriteString(raw)
	}
	return ended
}

func classOf(from *html.Tokenizer, more bool) string {
	for more {
		var key, value []byte
		if key, value, more = from.TagAttr(); string(key) == "class" {
			return string(value)
		}
	}
	return ""
}

// end returns the activity of the cell; nil: there is none. Its parts are separated by breaks: the prompt, the time, the answer.
func (h *htmlCell) end() *activity {
	a, raw := h.activity, h.raw.String()
	*h = htmlCell{}
	if !a.is || raw == "" {
		return nil
	}
	lines := strings.Split(strings.ReplaceAll(raw, "<br/>", "<br>"), "<br>")
	at := slices.IndexFunc(lines, func(line string) bool { return !geminiTime(line).IsZero() })
	if at < 1 {
		if at = 1; len(lines) > 1 {
			a.bad++
		}
	}
	at = min(at, len(lines))
	for _, found := range fileSource.FindAllStringSubmatch(raw, -1) {
		a.addFile(html.UnescapeString(found[1]))
	}
	a.title = markdown(strings.Join(a.withoutFiles(lines[:at]), "<br>"))
	if at < len(lines) {
		a.at = geminiTime(lines[at])
		a.answer = strings.TrimSpace(strings.Join(lines[at+1:], "<br>"))
	}
	return &a
}

var (
	// fileLine is a line below a prompt with a link to a file of the archive; fileSource is a picture or a sound within a text.
	fileLine   = regexp.MustCompile(`^\s*-(?:&nbsp;|[\s\x{a0}])*<a [^>]*href="([^":]+)"[^>]*>`)
	fileSource = regexp.MustCompile(`<(?:img|audio|video|source)\s[^>]*src="([^":]+)"`)
)

// withoutFiles returns the lines of a prompt without those that link to its files, which it adds.
func (a *activity) withoutFiles(lines []string) (rest []string) {
	counted := -1
	for _, line := range lines {
		if found := fileLine.FindStringSubmatch(line); found != nil {
			a.addFile(html.UnescapeString(found[1]))
			continue
		}
		if attachedLine.MatchString(line) {
			counted = len(rest)
		}
		rest = append(rest, line)
	}
	if counted >= 0 { // to the end, where it is counted
		rest = append(slices.Delete(rest, counted, counted+1), rest[counted])
	}
	return rest
}

func geminiTime(line string) time.Time {
	const most = 60
	text := strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(html.UnescapeString(firstBytes(line, most)), "\u202f", " "), "\u00a0", " "))
	for _, layout := range geminiTimes {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
