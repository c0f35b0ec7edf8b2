package shares

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCodeLooksAsInTheApp compares the width of a tab and the fonts of code.
func TestCodeLooksAsInTheApp(t *testing.T) {
	for file, pattern := range map[string]string{
		"../../web/src/parts/code.css":   `tab-size: \d+;`,
		"../../web/src/style/tokens.css": `ui-monospace, [^;]*monospace;`,
	} {
		css, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := regexp.MustCompile(pattern).FindString(string(css)); want == "" || !strings.Contains(pageCSS, want) {
			t.Errorf("page.css does not contain %q of %s", want, file)
		}
	}
}
