package source

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
)

// result is what was read from a file.
type result struct {
	conversations []*Conversation
	projects      []*Project
	instructions  []*Instructions
	own           *Instructions // of the account
	prompts       []*Prompt
	files         []*File
	contents      []string // of the files
	artifacts     []*Artifact
	problems      []string
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a text has no error
	return string(encoded)
}

func read(t *testing.T, file []byte) *result {
	t.Helper()
	return readFrom(t, bytes.NewReader(file), int64(len(file)))
}

func readFrom(t *testing.T, from io.ReaderAt, size int64) *result {
	t.Helper()
	r := &result{}
	if err := Read(t.Context(), from, size, time.Now(), r.handler()); err != nil {
		t.Fatal(err)
	}
	return r
}

// handler collects what is read.
func (r *result) handler() Handler {
	return Handler{
		Conversation:        func(c *Conversation) error { r.conversations = append(r.conversations, c); return nil },
		Archive:             func() error { return nil },
		Project:             func(p *Project) error { r.projects = append(r.projects, p); return nil },
		Instructions:        func(i *Instructions) error { r.instructions = append(r.instructions, i); return nil },
		AccountInstructions: func(i *Instructions) error { r.own = i; return nil },
		Prompt:              func(p *Prompt) error { r.prompts = append(r.prompts, p); return nil },
		File: func(f *File) error {
			r.files, r.contents = append(r.files, f), append(r.contents, contentOf(f))
			return nil
		},
		Artifact: func(v *Artifact) error { r.artifacts = append(r.artifacts, v); return nil },
		Problem: func(reason protocol.ImportReason, name, detail string, n int) error {
			r.problems = append(r.problems, fmt.Sprintf("%s %s %s %d", reason, name, detail, n))
			return nil
		},
	}
}

// contentOf returns the content of a file, or the error with which it ends.
func contentOf(f *File) string {
	if f.Open == nil {
		if f.OverLimit {
			return "over the limit"
		}
		return fmt.Sprintf("none, listed %t", f.Listed)
	}
	content, err := f.Open()
	if err != nil {
		return err.Error()
	}
	defer func() { _ = content.Close() }()
	text, err := io.ReadAll(content)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = io.WriteString(f, files[i+1])
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

// outline draws a tree: each message with its depth, its branch, its role and its parts.
func outline(tree *Tree) string {
	var out strings.Builder
	for _, m := range tree.Messages {
		fmt.Fprintf(&out, "%d/%d %s", m.Depth, m.Branch, m.Role)
		for _, p := range m.Parts {
			fmt.Fprintf(&out, " %s:%s", p.Type, p.Text+p.Code)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestAChatGPTExportIsReadWhole(t *testing.T) {
	r := read(t, testdata(t, "chatgpt_single.json"))
	if len(r.conversations) != 1 || len(r.problems) > 0 {
		t.Fatalf("%+v", r)
	}
	c := r.conversations[0]
	if c.Kind != protocol.ImportFromChatGPT || c.Title != "Roman roads" || c.ID != "11111111-2222-3333-4444-555555555555" ||
		!c.CreatedAt.Equal(time.UnixMicro(1700000000123456)) || !c.UpdatedAt.Equal(time.UnixMicro(1700000300500000)) {
		t.Errorf("%+v", c)
	}
	tree := c.Arrange()
	want := `1/0 user text:Who built the Via Appia?
2/1 assistant text:Appius Claudius Caecus.
2/0 assistant text:The censor Appius Claudius, in 312 BC.
3/0 user notice:image text:How long is it on this map? notice:map.png
4/0 assistant code:print(540) code:540 text:About 540 km.
`
	if got := outline(tree); got != want {
		t.Errorf("got\n%s", got)
	}
	if m := tree.Messages[1]; !m.CreatedAt.Equal(time.Unix(1700000010, 0)) || m.ModelID == nil || *m.ModelID != "gpt-4" || m.SiblingIndex != 0 || tree.Messages[2].SiblingIndex != 1 {
		t.Errorf("%+v", m)
	}
	if got := c.Notes[protocol.ImportAttachmentsAbsent]; got != 2 {
		t.Errorf("%d attachments are noted as absent", got)
	}
}

func TestASplitChatGPTExportIsReadFileByFile(t *testing.T) {
	file := zipOf(t, "chat.html", "<html>", "conversations-000.json", string(testdata(t, "chatgpt_split_0.json")),
		"export/conversations-001.json", string(testdata(t, "chatgpt_split_1.json")), "__MACOSX/._conversations-000.json", "junk", "user.json", "{}")
	r := read(t, file)
	if len(r.conversations) != 2 || !slices.Equal(r.problems, []string{"other_files_skipped   3"}) {
		t.Fatalf("%+v", r)
	}
	want := `1/1 user text:First wording
1/0 user text:Second wording
2/1 assistant text:First answer
2/0 assistant reasoning_summary:Weighing it

Two options. text:Second answer
`
	if got := outline(r.conversations[0].Arrange()); got != want {
		t.Errorf("got\n%s", got)
	}
	if c := r.conversations[1]; c.Title != "" || c.TitleSource != "auto" || len(c.Arrange().Messages) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAClaudeExportIsReadWhole(t *testing.T) {
	for name, file := range map[string][]byte{
		"json": testdata(t, "claude.json"),
		"zip":  zipOf(t, "users.json", "[]", "conversations.json", string(testdata(t, "claude.json")), "projects.json", "[]"),
	} {
		r := read(t, file)
		if len(r.conversations) != 2 {
			t.Fatalf("%s: %+v", name, r)
		}
		c := r.conversations[0]
		want := `1/0 user text:Why two tides a day? notice:photo.jpg
2/1 assistant reasoning_summary:Gravity gradient. tool: text:Because of the gradient of gravity.
2/0 assistant text:Another try
`
		if got := outline(c.Arrange()); got != want || c.Title != "Tides" || c.Notes[protocol.ImportMessagesUnlinked] != 0 {
			t.Errorf("%s: got\n%s%+v", name, got, c)
		}
		want = "1/0 user text:An old export\n2/0 assistant text:has no parents\n"
		if got := outline(r.conversations[1].Arrange()); got != want {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

func claudeOf(messages ...string) string {
	return `{"uuid":"x","name":"x","chat_messages":[` + strings.Join(messages, ",") + `]}`
}

func message(id, parent, text string) string {
	return fmt.Sprintf(`{"uuid":%q,"parent_message_uuid":%q,"sender":"human","text":%s}`, id, parent, text)
}

func TestHostileTextsAreChangedAndNoted(t *testing.T) {
	long := strings.Repeat("é", maxString)
	r := read(t, []byte(`[`+claudeOf(message("1", "", `"a\u0000b \ud800 c \udc00\ud83d\ude00"`))+`,
		{"uuid":"2","name":"`+strings.Repeat("t", 300)+`\n\u0007","created_at":1e300,"chat_messages":[`+message("1", "", `"`+long+`"`)+`,{"uuid":7,"text":{"a":1},"sender":[]}]},
		{"uuid":"3","name":7,"chat_messages":"none"}, 5, "x", null, [[]], {"title":"nothing"}, `+claudeOf(message("9", "", "\"\xff\""))+`]`))
	if len(r.conversations) != 4 {
		t.Fatalf("%d conversations, %v", len(r.conversations), r.problems)
	}
	if got := r.conversations[0].Messages[0].Parts[0].Text; got != "a\uFFFDb \uFFFD c \uFFFD😀" || r.conversations[0].Notes[protocol.ImportTextChanged] != 3 {
		t.Errorf("%q %v", got, r.conversations[0].Notes)
	}
	second := r.conversations[1]
	if len(second.Title) != protocol.MaxTitle || second.Notes[protocol.ImportTitleCut] != 1 || second.Notes[protocol.ImportTextCut] != 1 || second.CreatedAt.After(time.Now()) {
		t.Errorf("%q %v %v", second.Title, second.Notes, second.CreatedAt)
	}
	text := ""
	for _, m := range second.Messages {
		for _, p := range m.Parts {
			text += p.Text
		}
	}
	if len(text) > maxString || !strings.HasPrefix(long, text) || len(text) < maxString-4 {
		t.Errorf("%d bytes are left of the text", len(text))
	}
	if len(r.problems) != 5 {
		t.Errorf("problems %v", r.problems)
	}
}

func TestALongMessageBecomesSeveral(t *testing.T) {
	line := strings.Repeat("tide ", 20) + "\n"
	long := strings.Repeat(line, 3*maxMessage/len(line))
	r := read(t, []byte(claudeOf(message("1", "", `"before"`), message("2", "1", strconv.Quote(long)), message("3", "2", `"after"`), message("4", "2", `"another"`))))
	c := r.conversations[0]
	tree := c.Arrange()
	checkTree(t, tree)
	text := ""
	for i, m := range tree.Messages {
		encoded, err := json.Marshal(m.Parts)
		if err != nil || len(encoded) > maxMessage+1000 {
			t.Errorf("message %d has %d bytes, %v", i, len(encoded), err)
		}
		for _, p := range m.Parts {
			if i > 0 && p.Text != "after" && p.Text != "another" {
				text += p.Text
				if !strings.HasSuffix(p.Text, "\n") {
					t.Errorf("message %d ends within a line", i)
				}
			}
		}
	}
	if text != long || c.Notes[protocol.ImportMessagesSplit] != 1 || len(c.Notes) != 1 {
		t.Errorf("%d of %d bytes, %v", len(text), len(long), c.Notes)
	}
	last := tree.Messages[len(tree.Messages)-1]
	if n := len(tree.Messages); n < 6 || n > 12 || last.Depth != n-1 || last.SiblingIndex != 1 {
		t.Errorf("%d messages, the last at depth %d", n, last.Depth)
	}
}

func TestFieldsAreShortenedAndAddressesChecked(t *testing.T) {
	long := strings.Repeat("x", 512<<10)
	r := read(t, []byte(`{"format":"turnstone.conversation","conversation":{"conversation_id":"c","title":"`+long+`","head_message_id":"1","metadata":{"k":"`+long+`","good":"v"}},
		"draft":{"content":"`+long+`"},"branches":[{"name":"`+long+`","head_message_id":"1"}],
		"messages":[{"message_id":"1","role":"assistant","status":"complete","model_id":"`+long+`","routing":{"requested":"auto","resolved":"auto","reason":"`+long+`"},
		"parts":[{"type":"code","code":"1","language":"`+long+`","filename":"`+long+`"},
		{"type":"tool","tool_name":"`+long+`","kind":"`+long+`","title":"`+long+`","output":"`+long+`","input":{"a":"`+long+`"},"error":{"code":"x","detail":"`+long+`"},"state":"failed"},
		{"type":"text","text":"See","citations":[{"index":1,"title":"a","url":"javascript:alert(1)"},{"index":2,"title":"b","url":"https://tides.example/1"},{"index":3,"title":"c"}]}]}]}`))
	c := r.conversations[0]
	encoded, err := json.Marshal([]any{c.Messages, c.Branches, c.Draft, c.Metadata, c.Title})
	if err != nil || len(encoded) > maxOutput+2*4*protocol.MaxInputRunes {
		t.Errorf("%d bytes are kept, %v", len(encoded), err)
	}
	citations := c.Messages[0].Parts[2].Citations
	if len(citations) != 3 || citations[0].URL != "" || citations[1].URL != "https://tides.example/1" {
		t.Errorf("%+v", citations)
	}
	if c.Notes[protocol.ImportTitleCut] != 2 || c.Notes[protocol.ImportTextCut] < 7 || c.Notes[protocol.ImportTextChanged] != 1 || len(c.Metadata) != 1 {
		t.Errorf("%v %v", c.Notes, c.Metadata)
	}
}

func TestTheFilesAndPositionsOfAnExportAreBounded(t *testing.T) {
	const file = `"file_01h2xcejqtf2nbrexx3vqjhp41"`
	r := read(t, []byte(`{"format":"turnstone.conversation","conversation":{"conversation_id":"c"},
		"follow_ups":[{"state":"held","content":"a","position":9223372036854775807},{"state":"held","content":"b","position":-9223372036854775808}],
		"messages":[{"message_id":"1","role":"user","status":"complete","parts":[{"type":"text","text":"a"}],"attachments":[`+file+strings.Repeat(`,`+file, 1000)+`]}]}`))
	c := r.conversations[0]
	if files := c.Messages[0].Attachments; len(files) != 1 || c.Notes[protocol.ImportAttachmentsAbsent] != 0 {
		t.Errorf("%v, %v", files, c.Notes)
	}
	if last, first := c.FollowUps[0].Position, c.FollowUps[1].Position; last+1 <= last || first-1 >= first || last > 1<<40 || first < -1<<40 {
		t.Errorf("%d, %d", last, first)
	}
	// Each file may become a notice with a long name.
	if c.memory < absentNotice {
		t.Errorf("%d bytes are counted", c.memory)
	}
}

func TestADamagedFileKeepsItsGoodPart(t *testing.T) {
	whole := string(testdata(t, "claude.json"))
	for cut := 1; cut < len(whole)-2; cut += 37 {
		r := read(t, []byte(whole[:cut]))
		if len(r.problems) == 0 {
			t.Errorf("cut at %d: no problem", cut)
		}
		if strings.Index(whole, `"uuid": "m2"`)+500 < cut && len(r.conversations) == 0 {
			t.Errorf("cut at %d: nothing was kept", cut)
		}
	}
	archive := zipOf(t, "conversations-000.json", whole, "conversations-001.json", whole)
	for cut := 0; cut < len(archive); cut += 7 {
		read(t, archive[:cut])
		damaged := bytes.Clone(archive)
		damaged[cut] ^= 0x55
		read(t, damaged)
	}
}

func TestAChainOfAMillionMessagesIsCut(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(`{"title":"chain","id":"chain","current_node":"999999","mapping":{`)
	for i := range 1_000_000 {
		if i > 0 {
			file.WriteByte(',')
		}
		fmt.Fprintf(&file, `"%d":{"parent":"%d"`, i, i-1)
		if i < 2*maxMessages { // the others have no content
			fmt.Fprintf(&file, `,"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["message %d"]}}`, i)
		}
		file.WriteByte('}')
	}
	file.WriteString(`}}`)
	r := read(t, file.Bytes())
	tree := r.conversations[0].Arrange()
	if len(tree.Messages) != maxMessages || len(tree.Branches) != 1 || tree.Branches[0].HeadDepth != maxMessages {
		t.Errorf("%d messages on %d branches", len(tree.Messages), len(tree.Branches))
	}
	if cut := r.conversations[0].Notes[protocol.ImportMessagesCut]; cut != maxMessages+1_000_000-maxNodes {
		t.Errorf("%d messages are noted as cut", cut)
	}
}

func TestCirclesRepeatsAndNestingDoNotStopAnImport(t *testing.T) {
	c := &Conversation{Kind: protocol.ImportFromTurnstone}
	add := func(id, parent string) {
		c.add(Message{ID: id, Parent: parent, Role: protocol.RoleUser, Parts: []protocol.Part{{Type: protocol.PartText, Text: id}}})
	}
	add("a", "b")
	add("b", "a")
	add("self", "self")
	add("c", "")
	add("c", "")
	add("orphan", "nowhere")
	tree := c.Arrange()
	if len(tree.Messages) != 2 || c.Notes[protocol.ImportMessagesSkipped] != 4 || c.Notes[protocol.ImportMessagesUnlinked] != 1 {
		t.Errorf("%d messages, %v", len(tree.Messages), c.Notes)
	}
	// Each message is in a branch of its own, which leaves the one before it.
	deep := &Conversation{Kind: protocol.ImportFromTurnstone, Active: "0.0"}
	c = deep
	previous := ""
	for i := range 3000 {
		id := fmt.Sprint(i)
		add(id+".0", previous)
		add(id+".1", previous)
		previous = id + ".1"
	}
	tree = deep.Arrange()
	segments := 0
	for _, b := range tree.Branches {
		segments += len(b.Segments)
		if len(b.Segments) > maxNesting {
			t.Fatalf("a branch has %d segments", len(b.Segments))
		}
	}
	if segments > maxSegments+maxNesting || len(tree.Messages) == 0 {
		t.Errorf("%d segments", segments)
	}
	checkTree(t, tree)
}

// checkTree checks that every branch shows exactly the path to its head.
func checkTree(t *testing.T, tree *Tree) {
	t.Helper()
	type place struct{ branch, depth int }
	at := map[place]int{}
	for i, m := range tree.Messages {
		if _, twice := at[place{m.Branch, m.Depth}]; twice {
			t.Fatalf("two messages at depth %d of branch %d", m.Depth, m.Branch)
		}
		at[place{m.Branch, m.Depth}] = i
		if m.ParentIndex >= i {
			t.Fatalf("message %d precedes its parent", i)
		}
	}
	for n, b := range tree.Branches {
		message, depth := b.Head, b.HeadDepth
		for s := len(b.Segments) - 1; s >= 0; s-- {
			for ; depth >= b.Segments[s].From; depth-- {
				if found, is := at[place{b.Segments[s].Source, depth}]; !is || found != message {
					t.Fatalf("branch %d shows %d at depth %d, want %d", n, found, depth, message)
				}
				message = tree.Messages[message].ParentIndex
			}
		}
		if b.HeadDepth > 0 && (depth != 0 || message != -1) {
			t.Fatalf("branch %d does not reach its first message", n)
		}
	}
}

func TestABombIsNotUnpacked(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create("conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, `[`+claudeOf(message("1", "", `"kept"`))+`,{"x":"`)
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	for range 24 {
		_, _ = f.Write(zeros)
	}
	_, _ = io.WriteString(f, `"}]`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := read(t, out.Bytes())
	if len(r.conversations) != 1 || len(r.problems) != 2 || !strings.Contains(r.problems[0], "unpacks to too many bytes") {
		t.Errorf("%d conversations, %v", len(r.conversations), r.problems)
	}
	// An end that names more files than there can be.
	end := append([]byte("PK\x06\x06"), make([]byte, 52)...)
	end[32], end[38] = 0xff, 0xff
	end = append(end, "PK\x06\x07"...)
	end = append(end, make([]byte, 16)...)
	end = append(end, "PK\x05\x06"...)
	end = append(end, bytes.Repeat([]byte{0xff}, 16)...)
	end = append(end, 0, 0)
	if r := read(t, end); len(r.problems) != 1 {
		t.Errorf("%v", r.problems)
	}
}

// endless is a JSON text that never ends a value.
type endless struct {
	head, body string
	onRead     func()
}

func (e endless) ReadAt(p []byte, at int64) (int, error) {
	e.onRead()
	n := 0
	if at < int64(len(e.head)) {
		n = copy(p, e.head[at:])
	}
	for n < len(p) {
		n += copy(p[n:], e.body[(at+int64(n-len(e.head)))%int64(len(e.body)):])
	}
	return n, nil
}

// repeated is a body that is long enough to be read in large pieces.
func repeated(text string) string { return strings.Repeat(text, 1+(64<<10)/len(text)) }

// Memory does not grow with the file, whatever is in it.
func TestMemoryIsBounded(t *testing.T) {
	const (
		size = 24 << 20
		most = 12 << 20
	)
	element := claudeOf(message("1", "", `"`+strings.Repeat("text ", 2000)+`"`))
	const (
		chatGPT = `[{"mapping":{"a":{"message":{"author":{"role":"user"},"content":{`
		own     = `[{"format":"turnstone.conversation","messages":[{"role":"user",`
	)
	for name, file := range map[string]struct {
		head, body string
		most       uint64
	}{
		"a long string":         {`[{"title":"`, "x", 4 * maxString},
		"a long number":         {`[{"title":`, "1", most},
		"white space":           {`[`, " ", most},
		"a large unknown value": {`[{"x":[0`, `,"abcdefgh"`, most},
		"a large node":          {`[{"mapping":{"a":{"x":[0`, `,"abcdefgh"`, 8 * maxValue},
		"many nodes":            {`[{"mapping":{"a":{}`, `,"abc":{"id":"abc","message":{"author":{"role":"user"},"content":{"parts":["hello, world"]}}}`, 6 * most},
		"many parts":            {chatGPT + `"parts":["a"`, `,"a"`, 2 * most},
		"many parts of nodes":   {`[{"mapping":{"a":{}`, `,"` + strings.Repeat("b", 30) + `":{"message":{"author":{"role":"user"},"content":{"parts":["a"` + strings.Repeat(`,"a"`, 500) + `]}}}`, 6 * most},
		"many thoughts":         {chatGPT + `"content_type":"thoughts","thoughts":[{}`, `,{"summary":"a"}`, 2 * most},
		"many attachments":      {`[{"mapping":{"a":{"message":{"author":{"role":"user"},"metadata":{"attachments":[{}`, `,{"name":"a"}`, 2 * most},
		"many contents":         {`[{"chat_messages":[{"sender":"human","content":[{}`, `,{"type":"text","text":"a"}`, 2 * most},
		"many files":            {`[{"chat_messages":[{"sender":"human","files":[{}`, `,{"file_name":"a"}`, 2 * most},
		"many own parts":        {own + `"parts":[{}`, `,{"type":"text","text":"a"}`, 2 * most},
		"many own attachments":  {own + `"attachments":[""`, `,"a"`, 2 * most},
		"many citations":        {own + `"parts":[{"type":"text","text":"a","citations":[{}`, `,{"index":1}`, 2 * most},
		"many sources":          {own + `"parts":[{"type":"tool","sources":[{}`, `,{"filename":"a"}`, 2 * most},
		"many branches":         {`[{"format":"turnstone.conversation","branches":[0`, `,{"branch_id":"abc","name":"abc"}`, 2 * most},
		"many follow-ups":       {`[{"format":"turnstone.conversation","follow_ups":[0`, `,{"state":"held","content":"abc"}`, 2 * most},
		"many attached files":   {own + `"attachments":[""`, `,"file_01h2xcejqtf2nbrexx3vqjhp41"`, 2 * most},
		"many metadata":         {`[{"format":"turnstone.conversation","conversation":{"metadata":{"x":""`, `,"abc":"def"`, 2 * most},
		"long branch names":     {`[{"format":"turnstone.conversation","branches":[0`, `,{"head_message_id":"` + strings.Repeat("h", 1000) + `","name":"` + strings.Repeat("n", 1<<20) + `"}`, 2 * most},
		"long languages":        {`[{"format":"turnstone.conversation","messages":[0`, `,{"role":"user","parts":[{"type":"code","code":"x","language":"` + strings.Repeat("n", 1<<20) + `"}]}`, 2 * most},
		"deep nesting":          {`[`, `[`, most},
		"many attached texts":   {`[{"chat_messages":[{"sender":"human","attachments":[{}`, `,{"file_name":"a","extracted_content":"b"}`, 2 * most},
		"many artifacts":        {`[{"chat_messages":[{"sender":"assistant","content":[{}`, `,{"type":"tool_use","name":"artifacts","input":{"id":"a","command":"update","old_str":"","new_str":"b"}}`, 2 * most},
		"many calls":            {`[{"chat_messages":[{"sender":"assistant","content":[{}`, `,{"type":"tool_use","name":"a","input":{}}`, 3 * most},
		"many documents":        {`[{"docs":[0`, `,{"filename":"a","content":"b"}`, 8 * most},
		"many memories":         {`[{"project_memories":{"a":"b"`, `,"c":"d"`, 8 * most},
		"many steps":            {`[{"chat":{"history":{"messages":{"a":{"role":"assistant","output":[{}`, `,{"type":"function_call"}`, 3 * most},
		"many open messages":    {`[{"chat":{"messages":[{}`, `,{"role":"user","content":"hello"}`, 6 * most},
		"many open files":       {`[{"chat":{"messages":[{"role":"user","files":[{}`, `,{"name":"a"}`, 2 * most},
		"many members":          {`[{"messages":[{"sender":"User"`, `,"abcdefgh":0`, 4 * maxValue},
		"many children":         {`[{"messages":[{"sender":"User","text":"a","children":[{}`, `,{"sender":"User","text":"abc","children":[]}`, 6 * most},
		"deep children":         {`[{"messages":[`, `{"sender":"User","text":"abc","children":[`, 2 * most},
		"many fragments":        {`[{"mapping":{"a":{"message":{"fragments":[{}`, `,{"type":"RESPONSE","content":"a"}`, 2 * most},
		"many references":       {`[{"mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["\ue200a\ue201"]},"metadata":{"content_references":[{}`, `,{"matched_text":"\ue200a\ue201","items":[{"title":"a"}]}`, 2 * most},
		"many activities":       {`[{}`, `,{"header":"Gemini","title":"Prompted a","time":"2025-05-01T10:10:00Z","safeHtmlItem":[{"html":"b"}]}`, 2 * most},
		"many cells":            {`<html>`, `<div class="outer-cell"><div class="header-cell">Gemini</div><div class="content-cell">Prompted a<br>May 1, 2025, 10:10:00 AM UTC<br>b</div></div>`, 2 * most},
		"a long cell":           {`<html><div class="outer-cell"><div class="header-cell">Gemini</div><div class="content-cell">Prompted a<br>`, `<br>abcdefgh`, 6 * maxString},
		"a long line":           {"{}\n{\"x\":\"", "x", 4 * maxString},
		"many damaged lines":    {"{}\n", "{bad}\n", most},
		"many names":            {`[{"a":0`, `,"abcdefgh":0`, most},
		"many conversations":    {`[` + element, `,` + element, most},
		"many branch names":     {`[{"format":"turnstone.conversation","branches":[0`, `,{"name":"abc","head_message_id":"abc"}`, most},
	} {
		t.Run(name, func(t *testing.T) {
			// What each garbage collection found in use; the garbage depends on how busy the host computer is.
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			runtime.GC()
			metrics.Read(live)
			before, peak := live[0].Value.Uint64(), uint64(0)
			check := func() {
				metrics.Read(live)
				peak = max(peak, live[0].Value.Uint64()-min(before, live[0].Value.Uint64()))
			}
			err := Read(t.Context(), endless{file.head, repeated(file.body), check}, size, time.Now(), Handler{
				Conversation:        func(*Conversation) error { return nil },
				Project:             func(*Project) error { return nil },
				Instructions:        func(*Instructions) error { return nil },
				AccountInstructions: func(*Instructions) error { return nil },
				Prompt:              func(*Prompt) error { return nil },
				File:                func(*File) error { return nil },
				Artifact:            func(*Artifact) error { return nil },
				Problem:             func(protocol.ImportReason, string, string, int) error { return nil },
			})
			if check(); err != nil || peak > file.most {
				t.Errorf("%d MiB of memory, %v", peak>>20, err)
			}
		})
	}
}

func TestAFailureOfTheSourceIsNoProblemOfTheFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, file := range [][]byte{testdata(t, "claude.json"), zipOf(t, "conversations.json", string(testdata(t, "claude.json")))} {
		err := Read(ctx, bytes.NewReader(file), int64(len(file)), time.Now(), Handler{
			Conversation: func(*Conversation) error { return nil },
			Problem:      func(protocol.ImportReason, string, string, int) error { return nil },
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	// The source fails in the middle of a conversation, which must not be taken for a shorter one.
	down := errors.New("down")
	long := []byte(claudeOf(slices.Repeat([]string{message("1", "", `"`+strings.Repeat("text ", 1000)+`"`)}, 1000)...))
	failing := readerFunc(func(p []byte, at int64) (int, error) {
		if at > int64(len(long)/2) {
			return 0, down
		}
		return bytes.NewReader(long).ReadAt(p, at)
	})
	err := Read(t.Context(), failing, int64(len(long)), time.Now(), Handler{
		Conversation: func(*Conversation) error { t.Error("a part of a conversation was passed on"); return nil },
		Problem:      func(protocol.ImportReason, string, string, int) error { return nil },
	})
	if !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	stop := errors.New("stop")
	file := testdata(t, "claude.json")
	err = Read(t.Context(), bytes.NewReader(file), int64(len(file)), time.Now(), Handler{
		File: func(*File) error { return nil }, Conversation: func(*Conversation) error { return stop },
	})
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

type readerFunc func(p []byte, at int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

const (
	manifest = `{"format":"turnstone.export"}`
	projectA = "proj_01h2xcejqtf2nbrexx3vqjhp41"
	promptA  = "prompt_01h2xcejqtf2nbrexx3vqjhp41"
	fileA    = "file_01h2xcejqtf2nbrexx3vqjhp41"
	fileB    = "file_01h2xcejqtf2nbrexx3vqjhp42"
	hash     = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func TestAnArchiveOfThisServiceIsReadWhole(t *testing.T) {
	const root = "turnstone-export/"
	r := read(t, zipOf(t,
		root+"conversations/conv_01h2xcejqtf2nbrexx3vqjhp41.json", `{"format":"turnstone.conversation","conversation":{"conversation_id":"conv_01h2xcejqtf2nbrexx3vqjhp41"}}`,
		root+"conversations/conv_01h2xcejqtf2nbrexx3vqjhp41.md", "# c",
		root+"projects.json", `{"projects":[{"project_id":"`+projectA+`","name":"Tides","settings":{"memory_scope":"project","tools":{"now":false}}}]}`,
		root+"instructions.json", `{"instructions":[{"project_id":"`+projectA+`","version":1,"content":"Be brief."}]}`,
		root+"prompts.json", `{"prompts":[{"prompt_id":"`+promptA+`","project_id":"`+projectA+`","name":"greet","description":"Politely","text":"Hello {{name}}","version":3},{"prompt_id":"`+promptA+`","project_id":null,"name":"greet","text":"Hi"}]}`,
		root+"account_instructions.json", `{"account_instructions":[{"version":2,"content":"I am a nurse."},{"version":1,"content":"older"}]}`,
		root+"files.json", `{"files":[{"file_id":"`+fileA+`","filename":"a","size":1,"sha256":"`+hash+`","path":"files/`+fileA+`"},{"file_id":"`+fileB+`","filename":"b","size":1,"sha256":"`+hash+`","path":null}]}`,
		root+"files/"+fileA, "x", root+"files/unlisted", "y", "elsewhere.json", "{}",
		root+"research.json", `{"research_tasks":[{}]}`, root+"shares.json", `{"shares":[{},{}]}`, root+"usage.json", `{}`, root+"manifest.json", manifest))
	if len(r.conversations) != 1 || len(r.projects) != 1 || r.projects[0].Settings.MemoryScope != protocol.MemoryOfProject || len(r.instructions) != 1 || r.own == nil || r.own.Content != "I am a nurse." {
		t.Errorf("%+v", r)
	}
	if len(r.prompts) != 2 || r.prompts[0].ProjectID.String() != projectA || r.prompts[0].Text != "Hello {{name}}" || r.prompts[0].Version != 3 || !r.prompts[1].ProjectID.IsZero() {
		t.Errorf("%+v", r.prompts)
	}
	if want := []string{"x", "none, listed false"}; !slices.Equal(r.contents, want) {
		t.Errorf("contents %q, want %q", r.contents, want)
	}
	if want := []string{"research_skipped   1", "shares_skipped   2", "account_kept   1", "other_files_skipped   2"}; !slices.Equal(r.problems, want) {
		t.Errorf("problems %q, want %q", r.problems, want)
	}
}

// A character that the service does not store becomes a longer one.
func TestInstructionsThatAreShortenedAreReported(t *testing.T) {
	r := read(t, zipOf(t, "manifest.json", manifest,
		"account_instructions.json", `{"account_instructions":[{"version":1,"content":"`+strings.Repeat(`\u0000`, protocol.MaxInstructions+1)+`"}]}`))
	if r.own == nil || r.own.Content != strings.Repeat("\uFFFD", protocol.MaxInstructions) || !slices.ContainsFunc(r.problems, func(problem string) bool { return strings.HasPrefix(problem, "text_cut") }) {
		t.Errorf("problems %q", r.problems)
	}
}

func TestAHostileArchiveOfThisServiceIsBounded(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	r := read(t, zipOf(t, "manifest.json", manifest,
		"projects.json", `{"x":[[[]]],"projects":[{"project_id":"`+projectA+`","name":"`+long+`","settings":{"tools":{"`+long+`":false}}},{"project_id":"../x"},7,{"project_id":"`+projectA+`","name":"\u0000\n"}]}`,
		"instructions.json", `{"instructions":[{"project_id":"`+projectA+`","version":-1},{"project_id":"`+projectA+`","version":1,"content":"`+long+`"}`,
		"account_instructions.json", `{"account_instructions":[{"version":-1},{"version":1,"content":"`+long+`"}]}`,
		"prompts.json", `{"prompts":[{"prompt_id":"`+promptA+`","name":"a","description":"`+long+`","text":"`+long+`"},{"prompt_id":"`+promptA+`","name":"no spaces","text":"x"},{"prompt_id":"`+promptA+`","name":"a","text":" "},{"prompt_id":"../x","name":"a","text":"x"},7]}`,
		"files.json", `{"files":[{"file_id":"`+fileA+`","filename":"`+long+`","size":5,"sha256":"`+hash+`","path":"/etc/passwd"},{"file_id":"`+fileA+`","size":-1,"sha256":"`+hash+`"},{"file_id":"`+fileA+`","size":1,"sha256":"x"}]}`,
		"files/"+fileA, "x"))
	if len(r.projects) != 2 || len(r.projects[0].Name) != protocol.MaxTitle || len(r.projects[0].Settings.Tools.Off) != 0 || r.projects[1].Name != unnamedProject {
		t.Errorf("%+v", r.projects)
	}
	if len(r.instructions) != 1 || len(r.instructions[0].Content) != protocol.MaxInstructions {
		t.Errorf("%d instructions", len(r.instructions))
	}
	if r.own == nil || len(r.own.Content) != protocol.MaxInstructions {
		t.Error("the instructions of the account are not bounded")
	}
	if len(r.prompts) != 1 || len(r.prompts[0].Text) != protocol.MaxPromptText || len(r.prompts[0].Description) != protocol.MaxPromptDescription {
		t.Errorf("%d prompts", len(r.prompts))
	}
	if len(r.files) != 1 || len(r.files[0].Name) > longName || r.contents[0] != "none, listed true" {
		t.Errorf("%+v", r.files)
	}
	for _, want := range []string{"title_cut", "text_cut", "unreadable", "unreadable instructions.json The file is damaged"} {
		if !slices.ContainsFunc(r.problems, func(problem string) bool { return strings.HasPrefix(problem, want) }) {
			t.Errorf("no %s in %.300q", want, r.problems)
		}
	}
	// A list with more items than an account can have, and a manifest of another service.
	many := `{"projects":[` + strings.Repeat(`{"project_id":"`+projectA+`","name":"x"},`, maxProjects+5) + `{}]}`
	r = read(t, zipOf(t, "manifest.json", manifest, "projects.json", many))
	if len(r.projects) != maxProjects || !slices.Equal(r.problems, []string{"archive_limit projects.json  6"}) {
		t.Errorf("%d projects, %q", len(r.projects), r.problems)
	}
	r = read(t, zipOf(t, "manifest.json", `{"x":[`+strings.Repeat("1,", maxManifest)+`1],"format":"turnstone.export"}`, "projects.json", many))
	if len(r.projects) != 0 || !slices.Equal(r.problems, []string{"other_files_skipped   2"}) {
		t.Errorf("%d projects, %q", len(r.projects), r.problems)
	}
}

func TestTheBytesThatFilesUnpackToAreLimited(t *testing.T) {
	listed := func(id string) string {
		return `{"file_id":"` + id + `","filename":"a","size":10000,"sha256":"` + hash + `","path":"files/` + id + `"}`
	}
	content := strings.Repeat("x", 10_000)
	archive := zipOf(t, "manifest.json", manifest, "files.json", `{"files":[`+listed(fileA)+`,`+listed(fileB)+`]}`, "files/"+fileA, content, "files/"+fileB, content)
	r := &result{}
	from := &readerAt{ctx: t.Context(), from: bytes.NewReader(archive)}
	if err := readArchive(from, int64(len(archive)), 15_000, time.Now(), r.handler()); err != nil {
		t.Fatal(err)
	}
	if want := []string{content, "over the limit"}; !slices.Equal(r.contents, want) || len(r.problems) != 0 {
		t.Errorf("%.100q, %q", r.contents, r.problems)
	}
}

func TestBranchesOfThisServiceKeepTheirNamesAndOrder(t *testing.T) {
	own := func(branches string, messages ...string) *Tree {
		r := read(t, []byte(`{"format":"turnstone.conversation","conversation":{"conversation_id":"c","active_branch_id":"b2"},"branches":[`+branches+`],"messages":[`+strings.Join(messages, ",")+`]}`))
		if len(r.conversations) != 1 {
			t.Fatalf("%+v", r)
		}
		tree := r.conversations[0].Arrange()
		checkTree(t, tree)
		return tree
	}
	at := func(id, parent, branch string, sibling int) string {
		return fmt.Sprintf(`{"message_id":%q,"parent_message_id":%q,"branch_id":%q,"sibling_index":%d,"role":"user","parts":[]}`, id, parent, branch, sibling)
	}
	const branches = `{"branch_id":"b1","name":"first"},{"branch_id":"b2","name":"second","base_message_id":"m1"},{"branch_id":"b3","name":"empty","base_message_id":"m2"}`
	tree := own(branches, at("m1", "", "b1", 0), at("m3", "m1", "b2", 1), at("m2", "m1", "b1", 0))
	if len(tree.Branches) != 3 || tree.Branches[tree.Active].Source.Name != "second" || tree.Messages[1].ID != "m2" || tree.Messages[2].SiblingIndex != 1 {
		t.Errorf("%+v", tree)
	}
	if empty := tree.Branches[2]; empty.Source.Name != "empty" || empty.Head != empty.Base || empty.HeadDepth != 2 || len(empty.Segments) != 2 {
		t.Errorf("%+v", empty)
	}
	// Branches that the messages contradict.
	own(branches, at("m1", "", "b2", 0), at("m2", "", "b2", 0), at("m3", "m1", "b1", 0), at("m4", "m2", "b1", 0), at("m5", "m4", "none", 0), at("m6", "m4", "b2", 0))
	if tree := own(`{"branch_id":"b1","base_message_id":"nowhere"}`); len(tree.Branches) != 1 || tree.Branches[0].Head != none {
		t.Errorf("%+v", tree)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"chatgpt_single.json", "chatgpt_split_0.json", "claude.json"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, c := range read(t, file).conversations {
			checkTree(t, c.Arrange())
		}
	})
}

func TestTheMembersOfAConversationCanBeInAnyOrder(t *testing.T) {
	r := read(t, []byte(`{"conversation":{"conversation_id":"c","title":"Tides"},"draft":{"content":"Next"},"format":"turnstone.conversation"}`))
	if len(r.conversations) != 1 || r.conversations[0].ID != "c" || r.conversations[0].Title != "Tides" || r.conversations[0].Draft != "Next" {
		t.Errorf("%+v", r.conversations)
	}
}
