package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

const openWebUI = `[{"id":"ow","title":"Tides","pinned":true,"archived":false,"created_at":1700000000,"updated_at":1700000100,"chat":{"title":"Tides",
	"history":{"currentId":"3","messages":{
		"1":{"id":"1","parentId":null,"childrenIds":["2","3"],"role":"user","content":"Why?","timestamp":1700000000,"files":[
			{"type":"image","url":"data:image/png;base64,cGljdHVyZQ=="},{"type":"file","name":"notes.txt","file":{"filename":"notes.txt","data":{"content":"notes"}}},{"type":"file","name":"gone.pdf"}]},
		"2":{"id":"2","parentId":"1","role":"assistant","model":"llama","content":"<details type=\"reasoning\" done=\"true\"><summary>Thought</summary>\n&gt; Moon &amp; sun</details>\nThe moon.","timestamp":1700000010,"sources":[{"source":{"name":"https://tides.example/"}}]},
		"3":{"id":"3","parentId":"1","role":"assistant","model":"llama","timestamp":1700000020,"content":"Gravity. ","output":[{"type":"reasoning","content":[{"type":"output_text","text":"Hm"}]},
			{"type":"function_call","call_id":"c","name":"weather","arguments":"{\"city\":\"Brest\"}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"Rain"}]},
			{"type":"message","content":[{"type":"output_text","text":"Gravity."}]}]}}},"messages":[{"id":"1","parentId":null,"role":"user","content":"Why?","timestamp":1700000000}]}}]`

const libreChat = `{"conversationId":"lc","title":"Tides","messages":[
	{"messageId":"1","parentMessageId":"00000000-0000-0000-0000-000000000000","sender":"User","isCreatedByUser":true,"text":"Why?","createdAt":"2024-05-01T16:35:11.530Z","children":[
		{"messageId":"2","parentMessageId":"1","isCreatedByUser":false,"sender":"GPT","model":"gpt-4","text":"","content":[{"type":"think","think":"Hm"},{"type":"text","text":{"value":"The moon."}},
			{"type":"tool_call","tool_call":{"name":"search","args":"{\"q\":1}","output":"found"}}],"children":[]},
		{"messageId":"3","parentMessageId":"1","isCreatedByUser":false,"sender":"GPT","text":"Gravity.","files":[{"filename":"map.png"}],"children":[]}]}]}`

const deepSeek = `[{"id":"ds","title":"Tides","inserted_at":"2025-03-30T04:49:36.505000+08:00","updated_at":"2025-03-30T04:50:29.156000+08:00","mapping":{
	"root":{"id":"root","parent":null,"children":["1"],"message":null},
	"1":{"id":"1","parent":"root","message":{"files":[{"file_name":"notes.txt","content":"notes"},{"file_name":"map.png"}],"model":"deepseek-chat","inserted_at":"2025-03-30T04:49:37.018000+08:00","fragments":[{"type":"REQUEST","content":"Why?"}]}},
	"2":{"id":"2","parent":"1","message":{"model":"deepseek-chat","inserted_at":"2025-03-30T04:49:38.018000+08:00","fragments":[{"type":"SEARCH","results":[{"title":"Tides","url":"https://tides.example/"}]},{"type":"THINK","content":"Hm"},{"type":"RESPONSE","content":"Gravity."}]}}}}]`

const gemini = `[{"header":"Gemini Apps","title":"Prompted And at night?","time":"2025-05-01T10:10:00.000Z","products":["Gemini Apps"],"safeHtmlItem":[{"html":"<p>Also <b>then</b>.</p><ul><li>one</li><li>two</li></ul>"}]},
	{"header":"Gemini Apps","title":"Prompted Why two tides?","time":"2025-05-01T10:00:00.000Z","products":["Gemini Apps"],"attachedFiles":["map.png"],"safeHtmlItem":[{"html":"<p>Because of <a href=\"https://moon.example/\">the moon</a> &amp; sun.</p>"}]},
	{"header":"Gemini Apps","title":"Used Gemini","time":"2025-05-01T09:59:00.000Z","products":["Gemini Apps"]},
	{"header":"YouTube","title":"Watched a film","time":"2025-05-01T09:58:00.000Z","products":["YouTube"]},
	{"header":"Gemini Apps","title":"Prompted Hello","time":"2025-04-01T10:00:00.000Z","products":["Gemini Apps"]}]`

const geminiPageText = `<html><head><title>My Activity History</title></head><body><div class="mdl-grid">
<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell mdl-cell"><p class="mdl-typography--title">Gemini Apps<br></p></div>
<div class="content-cell mdl-cell mdl-typography--body-1">Prompted&nbsp;And at night?<br>May 1, 2025, 10:10:00` + "\u202f" + `AM UTC<br><p>Also <b>then</b>.</p><div>Twice.</div></div><div class="content-cell mdl-typography--text-right"></div><div class="content-cell"><b>Products:</b> Gemini Apps</div></div></div>
<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell mdl-cell"><p>Gemini Apps<br></p></div>
<div class="content-cell mdl-cell">Prompted&nbsp;Why two &lt;tides&gt;?<br>May 1, 2025, 10:00:00 AM UTC<br><p>The moon.</p></div></div></div>
<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell mdl-cell"><p>Gemini Apps<br></p></div>
<div class="content-cell mdl-cell">Prompted&nbsp;Hello<br>1 mai 2025 à 10:00<br></div></div></div></div></body></html>`

// The files of an archive are attached where a conversation names them, and are passed on once. What is not there is noted.
func TestFilesThatConversationsNameAreAttached(t *testing.T) {
	activity := func(members string) string {
		return `[{"header":"Gemini Apps","title":"Prompted Describe it","time":"2025-05-01T10:00:00.000Z","products":["Gemini Apps"],"safeHtmlItem":[{"html":"<p>A tide.</p>"}],` + members + `}]`
	}
	const folder = "Takeout/My Activity/Gemini Apps/"
	const cell = `<html><div class="outer-cell"><div class="header-cell"><p>Gemini Apps<br></p></div><div class="content-cell">Prompted&nbsp;Describe it<br>%s<br>May 1, 2025, 10:00:00 AM UTC<br><p>A tide.</p>%s</div></div></html>`
	libre := func(members string) string {
		return `{"conversationId":"1","messages":[{"messageId":"1","isCreatedByUser":true,"sender":"User","text":"Describe it",` + members + `}]}`
	}
	for name, c := range map[string]struct {
		archive        []string
		outline, files string
		notes          string
		problems       string
	}{
		"Gemini": {
			[]string{folder + "MyActivity.json", activity(`"attachedFiles":["tide.png"],"imageFile":"moon-1.jpg"`), folder + "tide.png", "tide", folder + "moon-1.jpg", "moon", "other.txt", "x"},
			"1/0 user text:Describe it 2 files\n2/0 assistant text:A tide.\n", "tide.png tide moon-1.jpg moon", "", "other_files_skipped   1",
		},
		"Gemini, its subtitles": {
			[]string{folder + "MyActivity.json", activity(`"subtitles":[{"name":"Attached 1 file."},{"name":"- tide.png","url":"tide%201.png"},{"name":"x","url":"https://e.org/x.png"}]`), folder + "tide 1.png", "tide"},
			"1/0 user text:Describe it 1 files\n2/0 assistant text:A tide.\n", "tide 1.png tide", "", "",
		},
		"Gemini, counted only": {
			[]string{folder + "MyActivity.json", strings.Replace(activity(`"attachedFiles":["tide.png"]`), "Describe it", "Describe it Attached 2 files.", 1), folder + "tide.png", "tide"},
			"1/0 user text:Describe it notice:a file 1 files\n2/0 assistant text:A tide.\n", "tide.png tide", "attachments_absent", "",
		},
		"Gemini, a page": {
			[]string{folder + "MyActivity.html", fmt.Sprintf(cell, `Attached 2 files.<br>-&nbsp;<a href="tide-7c.png">tide.png</a><br>-&nbsp;<a href="gone.png">gone.png</a>`, `<img src="made-1.png">`), folder + "tide-7c.png", "tide", folder + "made-1.png", "made"},
			"1/0 user text:Describe it notice:gone.png 2 files\n2/0 assistant text:A tide.\n", "made-1.png made tide-7c.png tide", "attachments_absent", "",
		},
		"LibreChat": {
			[]string{"chat.json", libre(`"files":[{"file_id":"f1","filename":"tide.png","filepath":"/images/u1/f1__tide.png"},{"filename":"gone.png"}],"content":[{"type":"image_file","image_file":{"filename":"moon.png","filepath":"/images/u1/moon.png"}}]`), "images/u1/f1__tide.png", "tide", "images/u1/moon.png", "moon", "images/u2/moon.png", "another"},
			"1/0 user text:Describe it notice:gone.png 2 files\n", "moon.png moon f1__tide.png tide", "attachments_absent", "other_files_skipped   1",
		},
		"LibreChat, two files of a name": {
			[]string{"chat.json", libre(`"files":[{"filename":"tide.png"}]`), "a/tide.png", "tide", "b/tide.png", "another"},
			"1/0 user text:Describe it notice:tide.png\n", "", "attachments_absent", "other_files_skipped   2",
		},
		"LibreChat, a file twice, and in two conversations": {
			[]string{"a.json", libre(`"files":[{"filename":"tide.png"},{"filename":"tide.png"}]`), "b.json", strings.Replace(libre(`"files":[{"filename":"x/tide.png"}]`), `"conversationId":"1"`, `"conversationId":"2"`, 1), "a/tide.png", "tide", "b/tide.png", "tide"},
			"1/0 user text:Describe it 1 files\n1/0 user text:Describe it 1 files\n", "tide.png tide", "", "",
		},
		"another service": {
			[]string{"conversations.json", `[{"uuid":"x","chat_messages":[{"uuid":"1","sender":"human","text":"Why?","files":[{"file_name":"../../tide.png"}]}]}]`, "files/tide.png", "tide"},
			"1/0 user text:Why? 1 files\n", "tide.png tide", "", "",
		},
	} {
		r := read(t, zipOf(t, c.archive...))
		var got strings.Builder
		var notes, files []string
		for _, one := range r.conversations {
			tree := one.Arrange()
			checkTree(t, tree)
			lines := strings.Split(outline(tree), "\n")
			for i := range tree.Messages {
				got.WriteString(lines[i])
				if n := len(tree.Messages[i].Attachments); n > 0 {
					fmt.Fprintf(&got, " %d files", n)
				}
				got.WriteString("\n")
			}
			for reason := range one.Notes {
				notes = append(notes, string(reason))
			}
		}
		for i, f := range r.files {
			files = append(files, f.Name, r.contents[i])
		}
		if got.String() != c.outline || strings.Join(files, " ") != c.files || strings.Join(notes, " ") != c.notes || strings.Join(r.problems, "|") != c.problems {
			t.Errorf("%s: got %q, files %q, notes %q, problems %q", name, got.String(), files, notes, r.problems)
		}
	}
}

func TestExportsOfOtherServicesAreReadWhole(t *testing.T) {
	for _, test := range []struct {
		file     string
		kind     protocol.ImportSource
		outlines []string
		files    string
		notes    string
		problems string
	}{
		{openWebUI, protocol.ImportFromOpenWebUI, []string{"1/0 user text:Why? notice:gone.pdf\n2/1 assistant reasoning_summary:Moon & sun text:The moon.\n2/0 assistant reasoning_summary:Hm tool: text:Gravity.\n"}, "Picture picture notes.txt notes", "attachments_absent", ""},
		{libreChat, protocol.ImportFromLibreChat, []string{"1/0 user text:Why?\n2/1 assistant reasoning_summary:Hm text:The moon. tool:\n2/0 assistant text:Gravity. notice:map.png\n"}, "", "attachments_absent", ""},
		{strings.Replace(libreChat, `"messages":`, `"messagesTree":`, 1), protocol.ImportFromLibreChat, []string{"1/0 user text:Why?\n2/1 assistant reasoning_summary:Hm text:The moon. tool:\n2/0 assistant text:Gravity. notice:map.png\n"}, "", "attachments_absent", ""},
		{deepSeek, protocol.ImportFromDeepSeek, []string{"1/0 user text:Why? notice:map.png\n2/0 assistant tool: reasoning_summary:Hm text:Gravity.\n"}, "notes.txt notes", "attachments_absent", ""},
		{gemini, protocol.ImportFromGemini, []string{
			"1/0 user text:Why two tides? notice:map.png\n2/0 assistant text:Because of [the moon](https://moon.example/) & sun.\n3/0 user text:And at night?\n4/0 assistant text:Also **then**.\n\n- one\n- two\n",
		}, "", "attachments_absent", "activities_skipped"},
		{geminiPageText, protocol.ImportFromGemini, []string{
			"1/0 user text:Why two <tides>?\n2/0 assistant text:The moon.\n3/0 user text:And at night?\n4/0 assistant text:Also **then**.\n\nTwice.\n", "1/0 user text:Hello\n",
		}, "", "times_unreadable", ""},
	} {
		for way, file := range map[string][]byte{"alone": []byte(test.file), "archive": zipOf(t, "Takeout/Mein Export.json", test.file), "page": zipOf(t, "a/x.html", test.file, "b.html", "<html>")} {
			if way == "page" && !strings.HasPrefix(test.file, "<") || way == "archive" && strings.HasPrefix(test.file, "<") {
				continue
			}
			r := read(t, file)
			var got, notes []string
			for _, c := range r.conversations {
				tree := c.Arrange()
				checkTree(t, tree)
				got = append(got, outline(tree))
				for reason := range c.Notes {
					notes = append(notes, string(reason))
				}
				if c.Kind != test.kind || c.ID == "" {
					t.Errorf("%s: %s %s", test.kind, c.Kind, c.ID)
				}
			}
			if len(got) < len(test.outlines) || !slices.Equal(got[:len(test.outlines)], test.outlines) {
				t.Errorf("%s, %s: got\n%s", test.kind, way, strings.Join(got, "\n"))
			}
			var files []string
			for i, f := range r.files {
				files = append(files, f.Name, r.contents[i])
			}
			if strings.Join(files, " ") != test.files || strings.Join(notes, " ") != test.notes || !strings.HasPrefix(strings.Join(r.problems, " "), test.problems) {
				t.Errorf("%s, %s: files %q, notes %q, problems %q", test.kind, way, files, notes, r.problems)
			}
		}
	}
}
