package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

// addToLibrary uploads a PDF and waits until its text was read.
func addToLibrary(t *testing.T, u *sitetest.User, name, content string) protocol.FileID {
	t.Helper()
	upload := uploaded(t, u, name, "application/pdf", content)
	sitetest.Eventually(t, "the text was read", func() bool {
		var file protocol.File
		u.Get(t, "/files/"+upload.FileID.String(), &file)
		return file.TextState == protocol.TextDone
	})
	return *upload.FileID
}

// answerOf asks a question and returns the parts of the answer.
func answerOf(t *testing.T, u *sitetest.User, conversation, question string) []protocol.Part {
	t.Helper()
	u.Chat(t, sitetest.ChatBody{"input": []map[string]any{{"type": "text", "text": question}}}.In(conversation)).ReadToEnd(t)
	messages := u.Messages(t, conversation)
	return messages[len(messages)-1].Parts
}

func TestAModelSearchesTheFilesInTheScopeOfTheConversation(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u, stranger := sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)
	file := addToLibrary(t, u, "pilot.pdf", manyPages())
	const question = "Search my files for the spring tide"
	parts := answerOf(t, u, u.NewConversation(t), question)
	if len(parts) != 2 || parts[0].ToolName != "search_files" || parts[0].State != protocol.ToolSucceeded || len(parts[0].Sources) != 1 ||
		parts[0].Sources[0].FileID != file || parts[0].Sources[0].Blocks[0].Page != answerOn {
		t.Fatalf("the parts are %+v", parts)
	}
	if cited := parts[1].Citations; !strings.Contains(parts[1].Text, "twelve metres") || len(cited) != 1 || cited[0].Page != answerOn || *cited[0].FileID != file {
		t.Errorf("the answer is %+v", parts[1])
	}
	const nothing = "None of the files has these words"
	if parts := answerOf(t, stranger, stranger.NewConversation(t), question); len(parts) != 2 || len(parts[0].Sources) != 0 || !strings.HasPrefix(parts[1].Text, nothing) {
		t.Errorf("another account gets %+v", parts)
	}

	var project protocol.Project
	u.Do(t, http.MethodPost, "/projects", map[string]any{"name": "Harbour"}).Want(t, http.StatusCreated, &project)
	var inside protocol.Conversation
	u.Do(t, http.MethodPost, "/conversations", map[string]any{"project_id": project.ProjectID}).Want(t, http.StatusCreated, &inside)
	if parts := answerOf(t, u, inside.ConversationID.String(), question); len(parts) != 2 || !strings.HasPrefix(parts[1].Text, nothing) {
		t.Errorf("a file of the library is found in a project: %+v", parts)
	}
	u.Do(t, http.MethodPost, "/projects/"+project.ProjectID.String()+"/files", map[string]any{"file_id": file}).Want(t, http.StatusOK, nil)
	if parts := answerOf(t, u, inside.ConversationID.String(), question); len(parts) != 2 || len(parts[1].Citations) != 1 {
		t.Errorf("a file of the project is not found: %+v", parts)
	}
}

// readingModel reads the page of the answer with a tool, and cites it.
func readingModel(file *protocol.FileID) func(modeltest.Request) modeltest.Step {
	number := regexp.MustCompile(`<file number="(\d+)"`)
	return func(request modeltest.Request) modeltest.Step {
		last := request.Messages[len(request.Messages)-1]
		if last.Role != "tool" {
			input, _ := json.Marshal(map[string]any{"file_id": file.String(), "first": answerOn})
			return modeltest.Step{ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "read_file", Input: input}}}
		}
		found := number.FindStringSubmatch(last.Text)
		if found == nil || !strings.Contains(last.Text, pdfAnswer) || !strings.Contains(request.System, "results of tools") {
			return modeltest.Step{Text: []string{"The tool returned: " + last.Text}}
		}
		return modeltest.Step{Text: []string{"By twelve metres [" + found[1] + ":217]."}}
	}
}

func TestAModelReadsAPageThatItWasNotShown(t *testing.T) {
	t.Parallel()
	var file protocol.FileID
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: readingModel(&file)})
	t.Cleanup(server.Close)
	s := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+server.URL,
		"TURNSTONE_MODEL_BALANCED=reader", "TURNSTONE_MODEL_CODING=reader")
	s.Start()
	u, stranger := sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)
	file = addToLibrary(t, u, "pilot.pdf", manyPages())
	parts := answerOf(t, u, u.NewConversation(t), "How high is it?")
	if len(parts) != 2 || parts[1].Text != "By twelve metres [200:217]." || len(parts[1].Citations) != 1 || parts[1].Citations[0].Page != answerOn {
		t.Errorf("the parts are %+v", parts)
	}
	parts = answerOf(t, stranger, stranger.NewConversation(t), "How high is it?")
	if len(parts) != 2 || parts[0].State != protocol.ToolFailed || parts[0].Error.Code != "not_found" || len(parts[1].Citations) != 0 {
		t.Errorf("another account gets %+v", parts)
	}
}
