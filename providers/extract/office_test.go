package extract_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/providers/extract"
	"turnstone/providers/extract/extracttest"
)

// fakeOffice converts every document to the one in a file.
func fakeOffice(t *testing.T, content string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "converted")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	replaceProgram(t, "soffice", `for last; do :; done
while [ $# -gt 1 ]; do case "$1" in --convert-to) to=$2;; --outdir) out=$2;; esac; shift; done
[ "$(cat "$last")" = old ] && [ -d "$HOME" ] && cat `+file+` > "$out/document.$to"`)
}

func TestADocumentOfOldOfficeIsConverted(t *testing.T) {
	for mediaType, c := range map[string]struct{ converted, want string }{
		"application/msword":            {extracttest.Word(extracttest.Paragraph("Tides")), `done "Tides\n"`},
		"application/vnd.ms-excel":      {extracttest.Workbook(map[string][][]any{"A": {{"x", 1}}}, "A"), `done of 1 sheet 1 (A) "x\t1\n"`},
		"application/vnd.ms-powerpoint": {extracttest.Zip(extracttest.SlideParts("Tides")), `done of 1 slide 1 "Tides\n"`},
	} {
		fakeOffice(t, c.converted)
		if got := readIn(t, "en", "old", mediaType); got != c.want {
			t.Errorf("%s: %s", mediaType, got)
		}
		if got := readIn(t, "en", "damaged", mediaType); got != `failed unreadable` {
			t.Errorf("%s, not converted: %s", mediaType, got)
		}
	}
	fakeOffice(t, "not a document")
	if got := readIn(t, "en", "old", "application/msword"); got != `failed damaged` {
		t.Errorf("converted to something else: %s", got)
	}
	only(t)
	if got := readIn(t, "en", "old", "application/msword"); got != `failed no_reader` {
		t.Errorf("without a program: %s", got)
	}
}

// What converts a document may have been taken over by it.
func TestWhatIsConvertedIsNotTrusted(t *testing.T) {
	replaceProgram(t, "soffice", `for last; do :; done; ln -s /etc/passwd "$(dirname "$last")/document.docx"`)
	if got := readIn(t, "en", "old", "application/msword"); got != `failed unreadable` {
		t.Errorf("a link: %s", got)
	}
	replaceProgram(t, "soffice", `for last; do :; done; mkfifo "$(dirname "$last")/document.docx"`)
	if got := readIn(t, "en", "old", "application/msword"); got != `failed unreadable` {
		t.Errorf("a pipe: %s", got)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "turnstone-child-*", "document.doc"))
	if err != nil || len(left) > 0 {
		t.Errorf("what is left: %v, %v", left, err)
	}
}

// TestLibreOfficeConverts uses the real program, where it is installed: it makes an old document, and reads it.
func TestLibreOfficeConverts(t *testing.T) {
	program, err := exec.LookPath("soffice")
	if err != nil {
		t.Skip("LibreOffice is not installed")
	}
	folder := t.TempDir()
	source := filepath.Join(folder, "a.rtf")
	if err := os.WriteFile(source, []byte(`{\rtf1\ansi Tides come\par and go\par}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "--headless", "-env:UserInstallation=file://"+folder+"/s", "--convert-to", "doc:MS Word 97", "--outdir", folder, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "a.doc"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := extract.New(command("read")...).ExtractIn(t.Context(), strings.NewReader(string(content)), "application/msword", "en")
	if err != nil || x.Text != "Tides come\nand go\n" {
		t.Errorf("%+v, %v", x, err)
	}
}
