package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

// nodes is a conversation of ChatGPT with messages in a chain: roles with more members, and contents.
func nodes(messages ...string) string {
	var all []string
	for i := 0; i < len(messages); i += 2 {
		all = append(all, fmt.Sprintf(`"n%[1]d":{"id":"n%[1]d","parent":%[2]q,"message":{"id":"n%[1]d","author":{"role":%[3]s,"content":%[4]s}}`, i/2, map[bool]string{false: fmt.Sprint("n", i/2-1)}[i == 0], messages[i]+strings.Repeat("}", 1+strings.Count(messages[i], "{")-strings.Count(messages[i], "}")), messages[i+1]))
	}
	return `[{"id":"x","title":"x","mapping":{` + strings.Join(all, ",") + `}}]`
}

func words(text string) string { return `{"content_type":"text","parts":[` + text + `]}` }

func TestFilesInAChatGPTArchiveAreReadOnceAndAttached(t *testing.T) {
	conversations := nodes(
		`"user"},"metadata":{"attachments":[{"id":"file-AAA","name":"map.png"},{"id":"file_bbb","name":"tides.pdf"},{"id":"file-GONE","name":"gone.txt"}]`,
		`{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"file-service://file-AAA"},"See the map."]}`,
		`"assistant"},"recipient":"dalle.text2im"`, `{"content_type":"code","text":"{\"prompt\":\"A tide\",\"n\":1}"}`,
		`"tool","name":"dalle.text2im"`, `{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"sediment://file_ccc#p"},"DALL-E made it."]}`,
		`"user"`, `{"content_type":"multimodal_text","parts":[{"content_type":"real_time_user_audio_video_asset_pointer","audio_asset_pointer":{"asset_pointer":"sediment://file_ddd"}},{"content_type":"image_asset_pointer","asset_pointer":"file-service://file-AAA"}]}`,
	)
	r := read(t, zipOf(t, "conversations.json", conversations, "file-AAA-original.png", "picture", "file_bbb.dat", "document", "dalle-generations/file_ccc-0b1c.webp", "made",
		"user-1/file_ddd.dat", "voice", "user-1/file-AAA-copy.png", "again", "file-EMPTY.txt", "", "conversation_asset_file_names.json", `{"file_bbb.dat":"tides.pdf","x":5}`, "user.json", "{}"))
	var got []string
	for i, f := range r.files {
		got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.MediaType, r.contents[i]))
	}
	want := []string{"original.png image/png picture", "tides.pdf application/pdf document", "0b1c.webp image/webp made", "file_ddd.dat application/octet-stream voice", "file-EMPTY.txt text/plain none, listed true"}
	if !slices.Equal(got, want) {
		t.Errorf("files %q", got)
	}
	if !slices.Equal(r.problems, []string{"other_files_skipped   2"}) {
		t.Errorf("problems %q", r.problems)
	}
	c := r.conversations[0]
	tree := c.Arrange()
	files := func(n int) (names []string) {
		for _, id := range tree.Messages[n].Attachments {
			names = append(names, r.files[slices.IndexFunc(r.files, func(f *File) bool { return f.ID == id })].Name)
		}
		return names
	}
	if len(tree.Messages) != 3 || !slices.Equal(files(0), []string{"original.png", "tides.pdf"}) || !slices.Equal(files(1), []string{"0b1c.webp"}) || !slices.Equal(files(2), []string{"file_ddd.dat", "original.png"}) {
		t.Fatalf("%d messages, files %q, %q, %q", len(tree.Messages), files(0), files(1), files(2))
	}
	parts := tree.Messages[0].Parts
	if len(parts) != 2 || parts[0].Text != "See the map." || parts[1].Text != "gone.txt" || c.Notes[protocol.ImportAttachmentsAbsent] != 1 || len(c.Notes) != 1 {
		t.Errorf("%+v, %v", parts, c.Notes)
	}
	call := tree.Messages[1].Parts
	if len(call) != 1 || call[0].Type != protocol.PartTool || !strings.Contains(string(call[0].Input), "A tide") || call[0].Output != "DALL-E made it." || len(call[0].Sources) != 1 || call[0].ToolID == nil {
		t.Errorf("%+v", call)
	}
	// The same conversation without its archive, and again: the identifiers are the same.
	if alone := read(t, []byte(conversations)).conversations[0]; alone.Notes[protocol.ImportAttachmentsAbsent] != 7 {
		t.Errorf("%v", alone.Notes)
	}
}

func TestMarksOfChatGPTBecomeCitationsAndNames(t *testing.T) {
	const (
		start, end, between = `\ue200`, `\ue201`, `\ue202`
		cite                = start + "cite" + between + "turn0search0" + between + "turn0search1" + end
		entity              = start + "entity" + between + `[\"city\",\"Brest\",\"France\"]` + end
		alt                 = start + "url" + between + "x" + end
		lost                = start + "navlist" + between + "y" + end
	)
	refs := `"metadata":{"content_references":[{"matched_text":"` + cite + `","type":"grouped_webpages","items":[{"title":"Tides","url":"https://tides.example/","supporting_websites":[{"title":"Moon","url":"https://moon.example/"}]}]},
		{"matched_text":"` + alt + `","type":"alt_text","alt":"the port"},5]}`
	r := read(t, []byte(nodes(`"user"`, words(`"Why?"`),
		`"assistant"},`+refs, words(`"In `+entity+`, `+alt+` has tides`+cite+`, twice`+cite+`.`+lost+` `+start+`open`+`"`),
	)))
	c := r.conversations[0]
	p := c.Messages[1].Parts[0]
	if p.Text != "In Brest, the port has tides[1][2], twice[1][2]. open" {
		t.Errorf("%q", p.Text)
	}
	if len(p.Citations) != 2 || p.Citations[0] != (protocol.Citation{Index: 1, Title: "Tides", URL: "https://tides.example/", Marker: "[1]"}) || p.Citations[1].Title != "Moon" {
		t.Errorf("%+v", p.Citations)
	}
	if c.Notes[protocol.ImportTextChanged] != 2 { // the list and the mark without an end; 5 is of another type
		t.Errorf("%v", c.Notes)
	}
	old := `"assistant"},"metadata":{"citations":[{"start_ix":4,"end_ix":14,"metadata":{"title":"Moon","url":"https://moon.example/"}},{"start_ix":90,"end_ix":2,"metadata":{"name":"notes.pdf"}},{"metadata":null}]`
	p = read(t, []byte(nodes(`"user"`, words(`"Why?"`), old, words(`"Sée 【3†source】."`)))).conversations[0].Messages[1].Parts[0]
	if p.Text != "Sée 【3†source】." || len(p.Citations) != 2 || p.Citations[0].Marker != "【3†source】" || p.Citations[1].Title != "notes.pdf" || p.Citations[1].Marker != "" {
		t.Errorf("%+v", p)
	}
	// No text keeps the private characters.
	r = read(t, []byte(nodes(`"assistant"`, `{"content_type":"code","text":"a`+cite+`b"}`)))
	if c := r.conversations[0]; c.Messages[0].Parts[0].Code != "aciteturn0search0turn0search1b" || c.Notes[protocol.ImportTextChanged] == 0 {
		t.Errorf("%q %v", c.Messages[0].Parts[0].Code, c.Notes)
	}
}

// canvas returns the messages of a call that writes a document, and its result.
func canvas(call, input string) []string {
	return []string{
		`"assistant"},"recipient":"canmore.` + call + `"`, `{"content_type":"code","text":` + quoted(input) + `}`,
		`"tool","name":"canmore.` + call + `"`, words(`"Done"`),
	}
}

func TestCanvasBecomesArtifactsWithVersions(t *testing.T) {
	messages := []string{`"user"`, words(`"Write"`)}
	messages = append(messages, canvas("create_textdoc", `{"name":"Plan","type":"code/python","content":"one $1 two\nthree two"}`)...)
	messages = append(messages, canvas("update_textdoc", `{"updates":[{"pattern":"two","multiple":true,"replacement":"2"}]}`)...)
	messages = append(messages, canvas("update_textdoc", `{"updates":[{"pattern":"(o)(n)e","replacement":"\\2\\g<1>$&"},{"pattern":"absent","replacement":""}]}`)...)
	messages = append(messages, canvas("update_textdoc", `{"updates":[{"pattern":".*","multiple":true,"replacement":"all"}]}`)...)
	messages = append(messages, canvas("create_textdoc", `{"name":"Letter","type":"document","content":"Dear"}`)...)
	messages = append(messages, canvas("update_textdoc", `{"updates":[{"pattern":"Dear","replacement":"Hello"}]}`)...)
	messages = append(messages, canvas("update_textdoc", `not JSON`)...)
	r := read(t, []byte(nodes(messages...)))
	c := r.conversations[0]
	var got []string
	for _, v := range r.artifacts {
		language := ""
		if v.Language != nil {
			language = *v.Language
		}
		got = append(got, fmt.Sprintf("%s %s %s %d %q", v.Title, v.Kind, language, v.Version, v.Content))
	}
	want := []string{
		`Plan code python 1 "one $1 two\nthree two"`, `Plan code python 2 "one $1 2\nthree 2"`, `Plan code python 3 "no$& $1 2\nthree 2"`, `Plan code python 4 "all"`,
		`Letter document  1 "Dear"`, `Letter document  2 "Hello"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if c.Notes[protocol.ImportUnreadable] != 2 || len(c.Notes) != 1 {
		t.Errorf("%v", c.Notes)
	}
	parts := c.Arrange().Messages[1].Parts
	if parts[0].Type != protocol.PartArtifact || *parts[0].ArtifactID != r.artifacts[0].ID || parts[0].Title != "Plan" || parts[0].Code != "" {
		t.Errorf("%+v", parts[0])
	}
	if last := parts[len(parts)-2]; last.Type != protocol.PartCode || last.Code != "not JSON" {
		t.Errorf("%+v", last)
	}
}

func TestManyVersionsAndCostlyPatternsAreBounded(t *testing.T) {
	messages := canvas("create_textdoc", `{"name":"Plan","type":"document","content":"`+strings.Repeat("a", 1<<19)+`"}`)
	for range protocol.MaxArtifactVersions + 5 {
		messages = append(messages, canvas("update_textdoc", `{"updates":[{"pattern":"(a|b|ab)*c`+strings.Repeat("(a*)*", 50)+`","replacement":"x"}]}`)...)
	}
	r := read(t, []byte(nodes(messages...)))
	if len(r.artifacts) == 0 || len(r.artifacts) > protocol.MaxArtifactVersions || r.conversations[0].Notes[protocol.ImportArtifactsLimit] == 0 || r.conversations[0].Notes[protocol.ImportUnreadable] == 0 {
		t.Errorf("%d versions, %v", len(r.artifacts), r.conversations[0].Notes)
	}
}
