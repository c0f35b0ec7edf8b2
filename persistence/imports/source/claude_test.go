package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

// calls is a conversation of Claude whose answers have parts.
func calls(parts ...string) string {
	var messages []string
	for i, part := range parts {
		messages = append(messages, fmt.Sprintf(`{"uuid":"m%d","sender":"assistant","content":[%s]}`, i, part))
	}
	return claudeOf(messages...)
}

func artifact(input string) string {
	return `{"type":"tool_use","name":"artifacts","input":{"id":"plan",` + input + `}},{"type":"tool_result","name":"artifacts","content":[{"type":"text","text":"OK"}]}`
}

func TestArtifactsOfClaudeHaveVersions(t *testing.T) {
	r := read(t, []byte(calls(
		artifact(`"command":"create","type":"application/vnd.ant.code","language":"go","title":"Plan","content":"one two"`),
		artifact(`"command":"update","old_str":"two","new_str":"2"`),
		artifact(`"command":"update","old_str":"two","new_str":"zwei"`), // on another branch
		artifact(`"command":"rewrite","content":"all"`),
		artifact(`"command":"update","old_str":"absent","new_str":"x"`),
		`{"type":"tool_use","name":"artifacts","input":{"id":"page","command":"create","type":"text/html","title":"Page","content":"<p>"}}`,
		`{"type":"tool_use","name":"web_search","input":{"query":"tides"}},{"type":"tool_result","name":"web_search","content":[{"type":"text","text":"High water"}],"is_error":false},{"type":"text","text":"Twice."}`,
	)))
	var got []string
	for _, v := range r.artifacts {
		got = append(got, fmt.Sprintf("%s %s %d %q", v.Title, v.Kind, v.Version, v.Content))
	}
	want := []string{`Plan code 1 "one two"`, `Plan code 2 "one 2"`, `Plan code 3 "one zwei"`, `Plan code 4 "all"`, `Page html 1 "<p>"`}
	c := r.conversations[0]
	if !slices.Equal(got, want) || c.Notes[protocol.ImportUnreadable] != 1 || len(c.Notes) != 1 || *r.artifacts[3].Language != "go" {
		t.Errorf("%s, %v", strings.Join(got, "\n"), c.Notes)
	}
	if p := c.Messages[1].Parts[0]; p.Type != protocol.PartArtifact || *p.ArtifactID != r.artifacts[1].ID || p.Version != 2 {
		t.Errorf("%+v", p)
	}
	if p := c.Messages[4].Parts[0]; p.Type != protocol.PartCode || !strings.Contains(p.Code, "absent") {
		t.Errorf("%+v", p)
	}
	if p := c.Messages[6].Parts; len(p) != 2 || p[0].ToolName != "web_search" || p[0].Output != "High water" || string(p[0].Input) != `{"query":"tides"}` {
		t.Errorf("%+v", p)
	}
}

func TestTextsOfClaudeBecomeFiles(t *testing.T) {
	attached := `{"uuid":"%s","sender":"human","text":"See","attachments":[{"file_name":"notes.txt","extracted_content":"notes"},{"file_name":"report.pdf","extracted_content":"a report"},{"file_name":"","extracted_content":"pasted"},{"file_name":"none.txt"}]}`
	r := read(t, []byte(claudeOf(fmt.Sprintf(attached, "1"), fmt.Sprintf(attached, "2"))))
	var got []string
	for i, f := range r.files {
		got = append(got, f.Name+" "+f.MediaType+" "+r.contents[i])
	}
	if want := []string{"notes.txt text/plain notes", "report.pdf.txt text/plain a report", "Text.txt text/plain pasted"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	c := r.conversations[0]
	if len(c.Messages) != 2 || len(c.Messages[1].Attachments) != 3 || c.Messages[1].Attachments[0] != r.files[0].ID || c.Notes[protocol.ImportAttachmentsAbsent] != 2 {
		t.Errorf("%+v", c)
	}
}

func TestProjectsAndMemoriesOfClaudeAreRead(t *testing.T) {
	projects := `[{"uuid":"p1","name":"Tides","description":"About water","prompt_template":"Be brief.","created_at":"2025-03-01T10:00:00Z","docs":[{"uuid":"d1","filename":"moon.md","content":"# Moon","created_at":"2025-03-02T10:00:00Z"},{"uuid":"d2","filename":"empty.md","content":""}]},
		{"docs":[],"prompt_template":"","name":"","uuid":"p2"}]`
	memories := `[{"conversations_memory":"Likes the sea.","project_memories":{"p1":"Prefers maps."},"account_uuid":"a"}]`
	conversation := strings.Replace(claudeOf(message("1", "", `"Why?"`)), `"name"`, `"project":{"uuid":"p1"},"name"`, 1)
	for kind, r := range map[string]*result{
		"archive": read(t, zipOf(t, "conversations.json", conversation, "projects.json", projects, "memories.json", memories, "users.json", "[]")),
		"folders": read(t, zipOf(t, "conversations.json", conversation, "projects/p1.json", projects, "x.json", memories, "users.json", "[]")),
		"text":    read(t, []byte(projects+memories+conversation)),
	} {
		if len(r.conversations) != 1 || len(r.projects) != 2 || r.projects[0].Name != "Tides" || r.projects[1].Name != unnamedProject || r.conversations[0].ProjectID != r.projects[0].ID {
			t.Fatalf("%s: %+v", kind, r)
		}
		if len(r.instructions) != 1 || r.instructions[0].Content != "Be brief." || r.instructions[0].ProjectID != r.projects[0].ID {
			t.Errorf("%s: %+v", kind, r.instructions)
		}
		var got []string
		for i, f := range r.files {
			got = append(got, fmt.Sprintf("%s %s %d", f.Name, r.contents[i], len(f.ProjectIDs)))
		}
		if want := []string{"moon.md # Moon 1", "Claude memories.md Likes the sea. 0", "Claude memories of the project.md Prefers maps. 1"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
		for _, want := range []string{"parts_skipped Tides  1", "files_absent Tides  1", "memories_as_files   2"} {
			if !slices.Contains(r.problems, want) {
				t.Errorf("%s: no %s in %q", kind, want, r.problems)
			}
		}
	}
}
