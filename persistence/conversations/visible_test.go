package conversations_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadsUseTheOneConditionForVisibleConversations finds statements that only check whether a conversation was deleted,
// and so would return conversations of a deleted project.
func TestReadsUseTheOneConditionForVisibleConversations(t *testing.T) {
	exempt := map[string]string{
		"conversations/conversation.go":   "has the condition",
		"conversations/list_statement.go": "repeats the conditions of its indexes",
		"conversations/filter.go":         "repeats the conditions of its indexes, and has the condition for what it lists",
		"conversations/expiry.go":         "deletes temporary conversations, which are in no project",
		"conversations/project.go":        "erases the conversations of a deleted project",
		"search/backfill.go":              "indexes; a search checks the project",
		"search/document.go":              "indexes, and has the condition for look-ups",
		"projects/reindex.go":             "moves the conversations of a deleted project",
		"erasure/erasure.go":              "counts files, which have a deletion of their own",
		"search/file.go":                  "reads files, which have a deletion of their own",
		"shares/file.go":                  "reads files, which have a deletion of their own",
		"prompts/prompt.go":               "reads projects, which have a deletion of their own",
		"imports/link.go":                 "reads files and projects, which have a deletion of their own",
		"imports/part.go":                 "reads files and projects, which have a deletion of their own",
		"conversations/attachment.go":     "reads files, which have a deletion of their own",
		"conversations/temporary_file.go": "deletes files, which a conversation of a deleted project still has",
	}
	err := filepath.WalkDir("..", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(at) != ".go" || strings.HasSuffix(at, "_test.go") {
			return err
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(at, ".."+string(filepath.Separator)))
		ofFiles := strings.HasPrefix(name, "files/") // they have a deletion of their own
		if strings.Contains(string(text), "deleted_at is null") && exempt[name] == "" && !ofFiles {
			t.Errorf("%s checks deleted_at: use conversations.Visible", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
