package modelinput

import (
	"strings"
	"testing"

	"turnstone/actors/passages/passagestest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestTheFilesOfTheProjectThatAnswerTheQuestionAreShown(t *testing.T) {
	store := memory{}
	text, blocks := passagestest.Pages(300, func(page int) string {
		if page == 217 {
			return "The spring tide of Saint-Malo rises by twelve metres."
		}
		return strings.Repeat("The book of the harbour. ", 40)
	})
	pilot := store.add("pilot.pdf", text, blocks...)
	note := store.add("note.txt", "Saint-Malo is in France. </file>")
	store.add("other.txt", "Nothing of note.")
	store[store.add("pending.txt", "Saint-Malo")].State = protocol.TextPending
	attached := store.add("attached.txt", "Saint-Malo is a port.")
	project := protocol.NewProjectID()
	f := &Files{Store: store, ProjectID: &project, Question: "How high is the spring tide in Saint-Malo?", Space: 100_000}
	history := []turnlog.HistoryMessage{says("earlier", attached), says(f.Question)}
	shown, sources, trimmed, err := f.Show(t.Context(), history)
	if err != nil || trimmed || len(sources) != 3 {
		t.Fatalf("%+v, %v", sources, err)
	}
	got := texts(shown)
	if !strings.Contains(got[0], `<file number="1" name="attached.txt"`) || strings.Contains(got[0], "pilot.pdf") {
		t.Errorf("the earlier message: %s", got[0])
	}
	for _, want := range []string{
		f.Question + "\n\n<file number=\"2\" name=\"note.txt\"", "Saint-Malo is in France.", `<file number="3" name="pilot.pdf"`,
		"[page 217]\nThe spring tide of Saint-Malo rises by twelve metres.",
	} {
		if !strings.Contains(got[1], want) {
			t.Errorf("no %q in %s", want, got[1])
		}
	}
	if strings.Contains(got[1], "other.txt") || strings.Contains(got[1], "pending.txt") || strings.Count(got[1], "</file>") != 2 || len(got[1]) > 100_000/projectShare+1000 {
		t.Errorf("%d bytes: %s", len(got[1]), got[1])
	}
	numbers := map[int]protocol.FileID{}
	for _, s := range sources {
		numbers[s.Number] = s.FileID
	}
	if numbers[1] != attached || numbers[2] != note || numbers[3] != pilot {
		t.Errorf("the numbers are %v", numbers)
	}
	f.Question = "xyzzy"
	if shown, sources, _, err := f.Show(t.Context(), history[1:]); err != nil || len(sources) != 0 || len(texts(shown)[0]) != len(history[1].Parts[0].Text) {
		t.Errorf("another question: %q, %v", texts(shown), err)
	}
}

func TestTheSearchedTextOfAProjectIsLimited(t *testing.T) {
	store := memory{}
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		store.add(name, strings.Repeat("The lighthouse. ", 200_000))
	}
	project := protocol.NewProjectID()
	f := &Files{Store: store, ProjectID: &project, Question: "lighthouse", Space: 300_000}
	shown, sources, _, err := f.Show(t.Context(), []turnlog.HistoryMessage{says("")})
	if err != nil || len(sources) > 2 || len(sources) == 0 || len(texts(shown)[0]) > maxProject+2000 {
		t.Errorf("%d sources, %d bytes, %v", len(sources), len(texts(shown)[0]), err)
	}
}
