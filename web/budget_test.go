package web_test

import (
	"io/fs"
	"path"
	"regexp"
	"testing"

	"turnstone/web"
)

// The budget of the first load is 250 kB of compressed JavaScript (gzip). 20 kB of it are reserved for future features.
const maxFirstLoad = 230_000

var (
	documentScript = regexp.MustCompile(`(?:src|href)="/assets/([^"]+\.js)"`)
	staticImport   = regexp.MustCompile(`(?:from|import)\s*"\./([^"]+\.js)"`)
)

// TestTheFirstLoadLeavesRoomForMore adds up the sizes of the scripts of the first page: those that the document names, and
// those that an existing conversation needs in addition, with their static imports.
func TestTheFirstLoadLeavesRoomForMore(t *testing.T) {
	built := web.Files()
	document, err := fs.ReadFile(built, "index.html")
	if err != nil {
		t.Fatalf("the web app is not built (make build builds it): %v", err)
	}
	pending := scriptsIn(documentScript, document)
	transcript, err := fs.Glob(built, "assets/transcript-*.js")
	if err != nil || len(pending) == 0 || len(transcript) != 1 {
		t.Fatalf("the document names %d scripts, and there are %d of the transcript (%v)", len(pending), len(transcript), err)
	}
	pending = append(pending, path.Base(transcript[0]))
	loaded := map[string]bool{}
	total := int64(0)
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		if loaded[name] {
			continue
		}
		loaded[name] = true
		info, err := fs.Stat(built, "assets/"+name+".gz")
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		script, err := fs.ReadFile(built, "assets/"+name)
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, scriptsIn(staticImport, script)...)
	}
	t.Logf("%d scripts, %d bytes (gzip)", len(loaded), total)
	if total > maxFirstLoad {
		t.Errorf("the first page has %d bytes of JavaScript (gzip), want at most %d: load later what it does not need", total, maxFirstLoad)
	}
}

func scriptsIn(pattern *regexp.Regexp, text []byte) (names []string) {
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		names = append(names, string(match[1]))
	}
	return names
}
