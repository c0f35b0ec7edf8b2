package response

import (
	"mime"
	"strings"
	"testing"
)

func TestADownloadHasTheNameOfTheFile(t *testing.T) {
	for name, plain := range map[string]string{
		"report.pdf": "report.pdf", ".env": ".env", "C# notes.md": "C# notes.md", "50% off & more.txt": "50_ off & more.txt", "a;b\"c'd.txt": "a;b_c'd.txt",
		"👩\u200d👩\u200d👧.png": "_____.png", "می\u200cخواهم.txt": "________.txt", "100+1 = a*b.txt": "100+1 = a*b.txt", strings.Repeat("字", 150) + ".md": strings.Repeat("_", 150) + ".md",
	} {
		header := Stored(name)
		disposition, parameters, err := mime.ParseMediaType(header)
		if err != nil || disposition != "attachment" || parameters["filename"] != name {
			t.Errorf("%q: %s (%v): %q", name, header, err, parameters["filename"])
		}
		before, _, _ := strings.Cut(header, "filename*")
		if _, parameters, err := mime.ParseMediaType(strings.TrimRight(before, "; ")); err != nil || parameters["filename"] != plain {
			t.Errorf("%q for old programs: %q, %v", name, parameters["filename"], err)
		}
	}
}
