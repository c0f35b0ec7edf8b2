package web_test

import (
	"io/fs"
	"regexp"
	"testing"

	"turnstone/web"
)

// The budget of the first load is 250 kB of compressed JavaScript (gzip). 30 kB of it are reserved for future features.
const maxFirstLoad = 220_000

// TestTheFirstLoadLeavesRoomForMore adds up the sizes of the scripts that the document names: the entry and its static
// imports. The document does not name scripts that are imported later.
func TestTheFirstLoadLeavesRoomForMore(t *testing.T) {
	built := web.Files()
	document, err := fs.ReadFile(built, "index.html")
	if err != nil {
		t.Fatalf("the web app is not built (make build builds it): %v", err)
	}
	scripts := regexp.MustCompile(`(?:src|href)="/(assets/[^"]+\.js)"`).FindAllSubmatch(document, -1)
	if len(scripts) == 0 {
		t.Fatal("the document does not name a script")
	}
	var total int64
	for _, script := range scripts {
		info, err := fs.Stat(built, string(script[1])+".gz")
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	t.Logf("%d scripts, %d bytes (gzip)", len(scripts), total)
	if total > maxFirstLoad {
		t.Errorf("the first load has %d bytes of JavaScript (gzip), want at most %d: load later what the first page does not need", total, maxFirstLoad)
	}
}
