package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

func TestAModelRunsCodeThatMakesATableAndAChart(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	stream := u.Chat(t, sitetest.ChatBody{"input": []map[string]any{{"type": "text", "text": "Please run code for me"}}}.In(conversation))
	progressed := 0
	events, _ := stream.ReadToEnd(t)
	for _, event := range events {
		if event.Type == "tool.progress" {
			progressed++
		}
	}
	messages := u.Messages(t, conversation)
	parts := messages[len(messages)-1].Parts
	if len(parts) != 5 || parts[0].ToolName != "run_code" || parts[0].State != protocol.ToolSucceeded || progressed == 0 ||
		!strings.HasPrefix(parts[0].Output, "The sum of the squares is 385\n") || !strings.Contains(parts[4].Code, "385") {
		t.Fatalf("%d reports of progress; the parts are %+v", progressed, parts)
	}
	for i, want := range []struct {
		kind          protocol.ArtifactKind
		title, prefix string
	}{{protocol.ArtifactTable, "Squares", "n,square\n1,1\n2,4\n"}, {protocol.ArtifactSVG, "Squares", "<svg xmlns="}} {
		part := parts[1+i]
		content := string(u.Do(t, http.MethodGet, "/artifacts/"+part.ArtifactID.String()+"/content", nil).Body)
		if part.Type != protocol.PartArtifact || part.Kind != string(want.kind) || part.Title != want.title || !strings.HasPrefix(content, want.prefix) {
			t.Errorf("%+v: %.100s", part, content)
		}
	}
	// A failure is that of its call only. The limits are tested in package code: here, which one is met first depends on the host computer.
	parts = answerOf(t, u, conversation, "Run this code: ```js\nprint('before'); missing()\n```")
	if len(parts) != 2 || parts[0].Error == nil || parts[0].Error.Code != "exception" || !strings.Contains(parts[0].Error.Detail, "before") {
		t.Errorf("%+v", parts)
	}
	if parts = answerOf(t, u, conversation, "Run this code: ```js\n6 * 7\n```"); len(parts) != 3 || !strings.Contains(parts[2].Code, "Value: 42") {
		t.Errorf("%+v", parts)
	}
}

// computingModel adds the numbers of a file with code.
func computingModel(file *protocol.FileID) func(modeltest.Request) modeltest.Step {
	return func(request modeltest.Request) modeltest.Step {
		last := request.Messages[len(request.Messages)-1]
		if last.Role == "tool" {
			return modeltest.Step{Text: []string{"The tool returned: " + last.Text}}
		}
		input, _ := json.Marshal(map[string]any{"code": "csv(files['heights.csv']).reduce((sum, row) => sum + Number(row.height), 0)", "file_ids": []string{file.String()}})
		return modeltest.Step{ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "run_code", Input: input}}}
	}
}

func TestCodeReadsOnlyFilesInTheScopeOfTheConversation(t *testing.T) {
	t.Parallel()
	var file protocol.FileID
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: computingModel(&file)})
	t.Cleanup(server.Close)
	s := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+server.URL, "TURNSTONE_MODEL_BALANCED=coder", "TURNSTONE_MODEL_CODING=coder", "TURNSTONE_CODE_SECONDS_PER_DAY=1")
	s.Start()
	u, stranger := sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)
	upload := uploaded(t, u, "heights.csv", "text/csv", "port,height\nEmden,3.25\nBremen,4\n")
	file = *upload.FileID
	sitetest.Eventually(t, "the text was read", func() bool {
		var of protocol.File
		u.Get(t, "/files/"+file.String(), &of)
		return of.TextState == protocol.TextDone
	})
	if parts := answerOf(t, u, u.NewConversation(t), "What is the sum?"); len(parts) != 2 || parts[0].Output != "Value: 7.25\n" || !strings.Contains(parts[1].Text, "7.25") {
		t.Errorf("%+v", parts)
	}
	for who, want := range map[*sitetest.User]protocol.ToolErrorCode{u: "daily_limit", stranger: "not_found"} {
		if parts := answerOf(t, who, who.NewConversation(t), "And again?"); len(parts) != 2 || parts[0].Error == nil || parts[0].Error.Code != want {
			t.Errorf("%s: %+v", want, parts)
		}
	}
}

func TestCodeIsNotRunWhereItIsOff(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t, "TURNSTONE_RUN_CODE=off")
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	var list struct {
		Data []struct {
			Name      string
			Available bool
			Reason    *string
		}
	}
	u.Do(t, http.MethodGet, "/tools", nil).Want(t, http.StatusOK, &list)
	for _, one := range list.Data {
		if one.Name == "run_code" && !one.Available && one.Reason != nil && strings.Contains(*one.Reason, "TURNSTONE_RUN_CODE is off") {
			return
		}
	}
	t.Errorf("%+v", list)
}
