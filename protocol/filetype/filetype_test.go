package filetype

import (
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestANameIsSafeToShowAndToSave(t *testing.T) {
	for name, want := range map[string]string{
		"report.pdf": "report.pdf", "  a\tb\nc.txt ": "a b c.txt", "../../etc/passwd": ".._.._etc_passwd", `C:\x.txt`: "C:_x.txt",
		"invoice\u202efdp.exe": "invoicefdp.exe", "zero\u200bwidth": "zerowidth", "潮汐.docx": "潮汐.docx", "a\x00b": "ab", "é.txt": "é.txt",
		"👩\u200d👩\u200d👧.png": "👩\u200d👩\u200d👧.png", "🏳️\u200d🌈.txt": "🏳️\u200d🌈.txt", "می\u200cخواهم.txt": "می\u200cخواهم.txt", "क्\u200dष.txt": "क्\u200dष.txt",
		"a\u200db": "ab", "a\u200c": "a", "\u200dم": "م", "👩\u200d.png": "👩.png", "م\u200d\u200dم": "مم", "C# notes.md": "C# notes.md", "50% off & more.txt": "50% off & more.txt", ".env": ".env",
		strings.Repeat("字", 255): strings.Repeat("字", 255),
	} {
		if got, err := CleanName("f", name); err != nil || got != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", " ", ".", "..", "...", "\u202e", "\x01", strings.Repeat("a", 256)} {
		if got, err := CleanName("f", name); protocol.CodeOf(err) != protocol.CodeInvalid {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestOnlyKnownTypesAndTextsAreAccepted(t *testing.T) {
	for name, want := range map[string]bool{
		"application/pdf": true, "text/x-go": true, "text/plain": true, OctetStream: true, "application/x-executable": false, "": false, "image/tiff": true, "image/vnd.adobe.photoshop": false, "application/ld+json": true, "application/atom+xml": true, "application/x+binary": false,
	} {
		if Accepts(name) != want {
			t.Errorf("%q", name)
		}
	}
	for _, m := range Types {
		if !slices.Contains(protocol.FileKinds, m.Kind) || KindOf(m.Name) != m.Kind {
			t.Errorf("%+v", m)
		}
	}
}

func TestNamesOfTypesAreOurs(t *testing.T) {
	for alias, name := range aliases {
		if _, again := aliases[name]; again || !Accepts(name) {
			t.Errorf("%s: %s", alias, name)
		}
	}
	for extension, name := range extensions {
		if !Accepts(name) || Canonical(name) != name || ByName("a"+strings.ToUpper(extension)) != name {
			t.Errorf("%s: %s", extension, name)
		}
	}
	if got := ByName("a.unknown"); got != "" {
		t.Errorf("%q", got)
	}
}
