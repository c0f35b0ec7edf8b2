package imports_test

import (
	"bytes"
	"fmt"
	"testing"

	"turnstone/persistence/imports"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

const chatGPTWithFiles = `[{"id":"x","title":"Tides","mapping":{
	"1":{"id":"1","message":{"author":{"role":"user"},"metadata":{"attachments":[{"id":"file-AAA","name":"map.txt"}]},"content":{"content_type":"multimodal_text","parts":["A map"]}}},
	"2":{"id":"2","parent":"1","message":{"author":{"role":"assistant"},"recipient":"dalle.text2im","content":{"content_type":"code","text":"{\"prompt\":\"A tide\"}"}}},
	"3":{"id":"3","parent":"2","message":{"author":{"role":"tool","name":"dalle.text2im"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"sediment://file_bbb"}]}}},
	"4":{"id":"4","parent":"3","message":{"author":{"role":"assistant"},"recipient":"canmore.create_textdoc","content":{"content_type":"code","text":"{\"name\":\"Plan\",\"type\":\"document\",\"content\":\"one\"}"}}},
	"5":{"id":"5","parent":"4","message":{"author":{"role":"assistant"},"recipient":"canmore.update_textdoc","content":{"content_type":"code","text":"{\"updates\":[{\"pattern\":\"one\",\"replacement\":\"two\"}]}"}}}}}]`

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
