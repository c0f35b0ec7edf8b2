package imports_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/conversations"
	"turnstone/persistence/imports"
	"turnstone/persistence/imports/source"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

const chatGPTWithFiles = `[{"id":"x","title":"Tides","mapping":{
	"1":{"id":"1","message":{"author":{"role":"user"},"metadata":{"attachments":[{"id":"file-AAA","name":"map.txt"}]},"content":{"content_type":"multimodal_text","parts":["A map"]}}},
	"2":{"id":"2","parent":"1","message":{"author":{"role":"assistant"},"recipient":"dalle.text2im","content":{"content_type":"code","text":"{\"prompt\":\"A tide\"}"}}},
	"3":{"id":"3","parent":"2","message":{"author":{"role":"tool","name":"dalle.text2im"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"sediment://file_bbb"}]}}},
	"4":{"id":"4","parent":"3","message":{"author":{"role":"assistant"},"recipient":"canmore.create_textdoc","content":{"content_type":"code","text":"{\"name\":\"Plan\",\"type\":\"document\",\"content\":\"one\"}"}}},
	"5":{"id":"5","parent":"4","message":{"author":{"role":"assistant"},"recipient":"canmore.update_textdoc","content":{"content_type":"code","text":"{\"updates\":[{\"pattern\":\"one\",\"replacement\":\"two\"}]}"}}}}}]`

// What an export writes is imported, or reported, or repeats something; it is not counted among the files that nobody knows.
func TestEveryFileOfAnExportIsKnownToTheImport(t *testing.T) {
	for _, path := range storetest.NewWorld(t).DB.Exports.Paths() {
		if !strings.HasSuffix(path, "/") && !slices.Contains(source.OwnFiles, path) {
			t.Errorf("%s is not in source.OwnFiles", path)
		}
	}
}

// Every step can be the last one of a process.
func TestTheFilesAndArtifactsOfAnotherServiceAreImportedOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	archive := zipped(w, "conversations.json", chatGPTWithFiles, "file-AAA-map.txt", "map", "dalle-generations/file_bbb-made.webp", "made")
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(archive), int64(len(archive)))
	w.Must(err)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	fake := receiver(w)
	w.Database.Admin(t, `create function die() returns trigger language plpgsql as $$ begin raise exception 'killed' using errcode = '57P01'; end $$`)
	for done := range 5 { // two files, a conversation, two versions of an artifact
		w.Database.Admin(t, fmt.Sprintf(`create or replace trigger die before update on imports for each row when (new.parts + new.handled > old.parts + old.handled and new.parts + new.handled > %d) execute function die()`, done))
		if err := w.DB.Imports.Continue(t.Context(), args, fake.receive); protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Fatalf("step %d: got %v", done, err)
		}
		w.Database.Admin(t, `drop trigger die on imports`)
	}
	done := run(w, w.Account, received.ImportID)
	if done.State != protocol.ImportCompleted || done.Files != 2 || done.Imported != 1 || done.Artifacts != 1 || done.Messages != 2 || len(done.Report.Reasons) != 0 || *done.Source != protocol.ImportFromChatGPT {
		t.Errorf("%+v", done)
	}
	for sql, want := range map[string]int{
		`select count(*) from files`: 2, `select count(*) from message_files`: 2, `select count(*) from artifact_versions`: 2,
		`select count(*) from messages m join files f on f.file_id = any (m.attachments) where m.role = 'user' and f.filename = 'map.txt'`:                                                                                           1,
		`select count(*) from messages m join files f on f.filename = 'made.webp' and m.parts::text like '%' || f.file_id || '%' or true where m.role = 'assistant' and cardinality(m.attachments) = 1 and f.filename = 'made.webp'`: 1,
		`select count(*) from messages m join artifacts a on a.conversation_id = m.conversation_id where a.version = 2 and a.kind = 'document' and a.title = 'Plan' and m.role = 'assistant'`:                                        1,
	} {
		if n := w.Count(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	// The same archive again, and in another account.
	if again := upload(w, w.Account, archive); again.Files != 0 || again.Imported != 0 || again.Report.Reasons[protocol.ImportAlreadyImported] != 3 {
		t.Errorf("again: %+v", again)
	}
	other := w.OtherAccount()
	if done := upload(w, other, archive); done.Files != 2 || done.Imported != 1 || done.Artifacts != 1 {
		t.Errorf("other account: %+v", done)
	}
}

func TestFilesThatConversationsOfOthersNameAreImportedOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	const activity = `{"header":"Gemini Apps","title":"Prompted Describe it","time":"2025-0%d-01T10:00:00.000Z","products":["Gemini Apps"],"attachedFiles":["tide.txt"%s],"safeHtmlItem":[{"html":"A tide."}]}`
	archive := zipped(w, "Takeout/MyActivity.json", fmt.Sprintf("["+activity+","+activity+"]", 2, "", 1, `,"gone.png"`), "Takeout/tide.txt", "tide")
	for again, want := range []int64{1, 0} {
		done := upload(w, w.Account, archive)
		if done.State != protocol.ImportCompleted || done.Files != want || done.Imported != 2*want || done.Report.Reasons[protocol.ImportAttachmentsAbsent] != want || done.Report.Reasons[protocol.ImportFilesSkipped] != 0 {
			t.Errorf("again: %d: %+v", again, done)
		}
		if n := w.Count(`select count(*) from messages m join files f on f.file_id = any (m.attachments) where m.role = 'user' and f.filename = 'tide.txt'`); n != 2 {
			t.Errorf("%d messages have the file", n)
		}
	}
}

func TestProjectsAndArtifactsOfClaudeAreImported(t *testing.T) {
	w := storetest.NewWorld(t)
	archive := zipped(w,
		"conversations.json", `[{"uuid":"x","name":"Tides","project":{"uuid":"p"},"chat_messages":[
			{"uuid":"1","sender":"human","text":"Why?","attachments":[{"file_name":"notes.txt","extracted_content":"notes"}]},
			{"uuid":"2","sender":"assistant","content":[{"type":"tool_use","name":"artifacts","input":{"id":"a","command":"create","type":"text/markdown","title":"Plan","content":"one"}},
				{"type":"tool_use","name":"artifacts","input":{"id":"a","command":"update","old_str":"one","new_str":"two"}}]}]}]`,
		"projects.json", `[{"uuid":"p","name":"Sea","prompt_template":"Be brief.","docs":[{"filename":"moon.md","content":"# Moon"}]}]`,
		"memories.json", `[{"conversations_memory":"Likes the sea."}]`)
	done := upload(w, w.Account, archive)
	if done.State != protocol.ImportCompleted || done.Projects != 1 || done.Files != 3 || done.Imported != 1 || done.Artifacts != 1 || len(done.Report.Reasons) != 1 || done.Report.Reasons[protocol.ImportMemoriesAsFiles] != 1 || *done.Source != protocol.ImportFromClaude {
		t.Errorf("%+v", done)
	}
	for sql, want := range map[string]int{
		`select count(*) from projects where name = 'Sea' and instructions_version = 1 and file_count = 1 and conversation_count = 1`:                                                              1,
		`select count(*) from messages m join files f on f.file_id = any (m.attachments) where f.filename = 'notes.txt'`:                                                                           1,
		`select count(*) from artifact_versions where content = 'two' and version = 2`:                                                                                                             1,
		`select count(*) from artifacts a join messages m on m.conversation_id = a.conversation_id and m.role = 'assistant' where m.parts::text like '%art\_%' and json_array_length(m.parts) = 2`: 1,
	} {
		if n := w.Count(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	if again := upload(w, w.Account, archive); again.Projects+again.Files+again.Imported+again.Artifacts != 0 || w.Count(`select count(*) from files`) != 3 {
		t.Errorf("again: %+v", again)
	}
	// An archive that has only a project.
	if alone := upload(w, w.OtherAccount(), zipped(w, "projects.json", `[{"uuid":"p","name":"Sea","prompt_template":""}]`)); alone.State != protocol.ImportCompleted || alone.Projects != 1 {
		t.Errorf("alone: %+v", alone)
	}
}

// claudeChain is a conversation of Claude with messages in a chain, and further ones with their parents.
func claudeChain(n int, more ...string) []byte {
	var messages []string
	for i := range n {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint(i)
		}
		messages = append(messages, claudeMessage(fmt.Sprint(i+1), parent, i))
	}
	return []byte(`[{"uuid":"x","name":"Tides","chat_messages":[` + strings.Join(append(messages, more...), ",") + `]}]`)
}

func claudeMessage(id, parent string, i int) string {
	return fmt.Sprintf(`{"uuid":%q,"parent_message_uuid":%q,"sender":%q,"text":"message %[1]s","created_at":"2025-03-01T10:%02[4]d:00Z"}`, id, parent, []string{"human", "assistant"}[i%2], i%60)
}

func TestAConversationThatHasGrownGetsItsNewMessages(t *testing.T) {
	w := storetest.NewWorld(t)
	if done := upload(w, w.Account, claudeChain(2)); done.Imported != 1 || done.Messages != 2 {
		t.Fatalf("%+v", done)
	}
	list, _, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &conversations.ConversationFilter{}, nil, 10)
	w.Must(err)
	id := list[0].ConversationID
	done := upload(w, w.Account, claudeChain(4))
	if done.Imported != 0 || done.Updated != 1 || done.Skipped != 0 || done.Messages != 2 || done.Report.Reasons[protocol.ImportMessagesAdded] != 2 || len(done.Report.Reasons) != 1 {
		t.Errorf("%+v", done)
	}
	want := trees(w, w.Account)
	if n := w.Count(`select count(*) from branches`); n != 1 || !strings.Contains(want[0], `text:"message 4"`) {
		t.Errorf("%d branches\n%s", n, want)
	}
	// The same, and an older one: nothing changes.
	for _, n := range []int{4, 2} {
		if done := upload(w, w.Account, claudeChain(n)); done.Updated != 0 || done.Skipped != 1 || done.Messages != 0 || done.Report.Reasons[protocol.ImportAlreadyImported] != 1 {
			t.Errorf("%d: %+v", n, done)
		}
	}
	if got := trees(w, w.Account); !slices.Equal(got, want) {
		t.Errorf("got\n%s", got)
	}
	// The account continues the conversation and renames it; the other service continues it, too, and has another version of its first answer.
	w.Start(w.Request(&id, "a question here")).End(nil)
	_, err = w.DB.Conversations.SetTitle(t.Context(), w.Account, id, "Mine", nil)
	w.Must(err)
	done = upload(w, w.Account, claudeChain(6, claudeMessage("2b", "1", 1), claudeMessage("3b", "2b", 2)))
	if done.Updated != 1 || done.Messages != 4 || done.Report.Reasons[protocol.ImportMessagesAdded] != 4 {
		t.Errorf("%+v", done)
	}
	got := strings.Join(trees(w, w.Account), "\n")
	active := got[strings.Index(got, "\nactive"):]
	for _, text := range []string{"Mine", `message 4`, `message 6`, `message 3b`} {
		if !strings.Contains(got, text) {
			t.Errorf("no %s in\n%s", text, got)
		}
	}
	if !strings.Contains(active, "a question here") || strings.Contains(active, "message 5") {
		t.Errorf("active: %s", active)
	}
	if n := w.Count(`select count(*) from messages m join conversations c using (account_id, conversation_id) where c.message_count = 10`); n != 10 || w.Count(`select count(*) from branches`) != 3 {
		t.Errorf("%d messages", n)
	}
	again := upload(w, w.Account, claudeChain(6, claudeMessage("2b", "1", 1), claudeMessage("3b", "2b", 2)))
	if again.Updated != 0 || again.Messages != 0 || w.Count(`select count(*) from messages`) != 10 {
		t.Errorf("again: %+v", again)
	}
	// A branch that was imported can be continued here.
	if list, _, err = w.DB.Conversations.ListConversations(t.Context(), w.OtherAccount(), &conversations.ConversationFilter{}, nil, 10); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// The first branch comes with its conversation.
func TestTheFeedReportsTheBranchesOfAGrownConversation(t *testing.T) {
	w := storetest.NewWorld(t)
	upload(w, w.Account, claudeChain(2))
	if n := w.Count(`select count(*) from feed_items where kind = 'branch'`); n != 0 {
		t.Errorf("%d branches of a conversation with one", n)
	}
	done := upload(w, w.Account, claudeChain(2, claudeMessage("1b", "", 0), claudeMessage("2b", "1", 1)))
	if done.Messages != 2 || w.Count(`select count(*) from branches`) != 3 {
		t.Fatalf("%+v", done)
	}
	if n := w.Count(`select count(*) from feed_items f join branches b on b.account_id = f.account_id and b.branch_id = f.id where f.kind = 'branch'`); n != 2 {
		t.Errorf("the feed reports %d of 2 new branches", n)
	}
}

// The first export has as many nested branches as a conversation may have. In the second one they are the path that is shown, so it has
// few branches itself, but here are no more.
func TestMessagesWithoutAPlaceInAGrownConversationAreReported(t *testing.T) {
	w := storetest.NewWorld(t)
	const nested = 316 // 50,086 segments
	messages := []string{claudeMessage("s1", "", 0)}
	for k := 1; k < nested; k++ {
		up := fmt.Sprintf("s%d", k)
		messages = append(messages, claudeMessage(fmt.Sprintf("t%d", k), up, k), claudeMessage(fmt.Sprintf("s%d", k+1), up, k))
	}
	shown := claudeMessage("shown", "s1", 1)
	if done := upload(w, w.Account, claudeChain(0, append(slices.Clone(messages), shown)...)); done.Imported != 1 || len(done.Report.Reasons) != 0 {
		t.Fatalf("%+v", done)
	}
	branches := w.Count(`select count(*) from branches`)
	grown := claudeChain(0, append(messages, shown, claudeMessage("x", "s3", 3), claudeMessage("after x", "x", 4), claudeMessage("y", "s4", 4), claudeMessage("last", fmt.Sprintf("s%d", nested), nested))...)
	done := upload(w, w.Account, grown)
	if done.Updated != 1 || done.Messages != 1 || done.Report.Reasons[protocol.ImportMessagesAdded] != 1 || done.Report.Reasons[protocol.ImportMessagesCut] != 3 || len(done.Report.Reasons) != 2 {
		t.Errorf("%+v", done)
	}
	if n := w.Count(`select count(*) from branches`); n != branches {
		t.Errorf("%d branches, want %d", n, branches)
	}
	// Again, nothing is added, and the same is reported.
	if again := upload(w, w.Account, grown); again.Updated != 0 || again.Skipped != 1 || again.Report.Reasons[protocol.ImportMessagesCut] != 3 || len(again.Report.Reasons) != 1 {
		t.Errorf("again: %+v", again)
	}
}

func TestAnInterruptedGrowthAddsEachMessageOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	if done := upload(w, w.Account, claudeChain(2)); done.Imported != 1 {
		t.Fatalf("%+v", done)
	}
	const n = 1700
	file := claudeChain(n)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	w.Database.Admin(t, `create function die() returns trigger language plpgsql as $$ begin raise exception 'killed' using errcode = '57P01'; end $$`)
	for most := 2; most < n; most += 500 {
		w.Database.Admin(t, fmt.Sprintf(`create or replace trigger die before update of message_count on conversations for each row when (new.message_count > %d) execute function die()`, most))
		if err := w.DB.Imports.Continue(t.Context(), args, nil); protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Fatalf("got %v", err)
		}
		w.Database.Admin(t, `drop trigger die on conversations`)
	}
	done := run(w, w.Account, received.ImportID)
	if done.State != protocol.ImportCompleted || done.Updated != 1 || done.Messages != n-2 || w.Count(`select count(*) from messages`) != n || w.Count(`select count(*) from branches where head_depth = 1700`) != 1 {
		t.Errorf("%+v, %d messages", done, w.Count(`select count(*) from messages`))
	}
}

func TestExportsOfOtherServicesAreImported(t *testing.T) {
	w := storetest.NewWorld(t)
	for source, file := range map[protocol.ImportSource]string{
		protocol.ImportFromOpenWebUI: `[{"id":"1","chat":{"title":"Tides","history":{"currentId":"1","messages":{"1":{"id":"1","role":"user","content":"Why?","files":[{"type":"image","url":"data:text/plain;base64,cGljdHVyZQ=="}]}}}}}]`,
		protocol.ImportFromLibreChat: `{"conversationId":"1","messages":[{"messageId":"1","isCreatedByUser":true,"text":"Why?"}]}`,
		protocol.ImportFromDeepSeek:  `[{"id":"1","inserted_at":"2025-03-30T04:49:36Z","mapping":{"1":{"id":"1","message":{"fragments":[{"type":"REQUEST","content":"Why?"}]}}}}]`,
		protocol.ImportFromGemini:    `[{"header":"Gemini Apps","title":"Prompted Why?","time":"2025-05-01T10:10:00.000Z","products":["Gemini Apps"],"safeHtmlItem":[{"html":"Gravity."}]}]`,
	} {
		done := upload(w, w.Account, []byte(file))
		if done.State != protocol.ImportCompleted || done.Imported != 1 || done.Source == nil || *done.Source != source || len(done.Report.Reasons) != 0 {
			t.Errorf("%s: %+v", source, done)
		}
		if again := upload(w, w.Account, []byte(file)); again.Imported+again.Updated != 0 {
			t.Errorf("%s again: %+v", source, again)
		}
	}
}

func TestMessagesThatAreNotShownHaveOneLine(t *testing.T) {
	w := storetest.NewWorld(t)
	const conversation = `{"id":"%d","title":"x","mapping":{"1":{"id":"1","message":{"author":{"role":"system"},"content":{"content_type":"text","parts":["Be kind."]}}},
		"2":{"id":"2","parent":"1","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Why?"]}}}}}`
	done := upload(w, w.Account, fmt.Appendf(nil, `[`+conversation+`,`+conversation+`]`, 1, 2))
	if len(done.Report.Entries) != 1 || done.Report.Entries[0].Count != 2 || done.Report.Reasons[protocol.ImportHiddenSkipped] != 2 {
		t.Errorf("%+v", done.Report)
	}
}
