package load

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestACorpusHasManyAccountsOfUnequalSize(t *testing.T) {
	named := CorpusShare{Account: uuid.New(), Conversations: 300, Messages: 200}
	corpus := &Corpus{Messages: 5000, Others: 40, Named: []CorpusShare{named}}
	var out bytes.Buffer
	if err := corpus.Write(&out); err != nil {
		t.Fatal(err)
	}
	tables, sizes := map[string]int{}, map[string]int{}
	table := ""
	ids := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		switch {
		case strings.HasPrefix(line, "copy "):
			table, _, _ = strings.Cut(line[len("copy "):], " ")
		case strings.HasPrefix(line, `\.`):
			table = ""
		case table != "":
			tables[table]++
			columns := strings.Split(line, "\t")
			if table == "messages" {
				sizes[columns[0]]++
			}
			if key := columns[0] + columns[1] + columns[min(4, len(columns)-1)]; ids[key] {
				t.Fatalf("%s has the row %s twice", table, key)
			} else if ids[key] = true; strings.Contains(line, `\`) {
				t.Fatalf("a row has a backslash: %s", line)
			}
		}
	}
	if tables["accounts"] != 40 || tables["conversations"] != tables["branches"] || tables["conversations"] != tables["branch_segments"] || tables["conversations"] < 340 {
		t.Errorf("rows: %v", tables)
	}
	largest := 0
	for account, n := range sizes {
		if account != named.Account.String() {
			largest = max(largest, n)
		}
	}
	if n := tables["messages"]; n < 4900 || n > 5100 || sizes[named.Account.String()] != named.Messages || largest < 1000 || len(sizes) != 41 {
		t.Errorf("%d messages of %d accounts; %d in the named account and %d in the largest other one", n, len(sizes), sizes[named.Account.String()], largest)
	}
	if corpus.Conversation(0) == uuid.Nil {
		t.Error("the conversation of the named account has no identifier")
	}
}
