package markdown

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const report = `# Tides & *ebbs*

> A note [1]

Spring tides **rise** ~~fall~~ by 12 m [1]. See [the table](https://tides.example/a?b=1&c) or [this](javascript:alert(1)).
Entities &amp; escapes \*stay\*.

1. one
   - inner
2. two

| a | b |
|---|---|
| 1 | <b>2</b> |

` + "```\nif a < b {\n\tc()\n}\n```\n" + `
## المصادر

مصدر واحد.

<script>alert(1)</script>

<pre>
kept
</pre>
`

// wordText returns the paragraphs of a document, and checks that each of its parts is well-formed.
func wordText(t *testing.T, file []byte) (paragraphs []string, document, links string) {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range archive.File {
		content, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		switch part.Name {
		case "word/document.xml":
			document = string(text)
		case "word/_rels/document.xml.rels":
			links = string(text)
		}
		var paragraph strings.Builder
		for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", part.Name, err)
			}
			if part.Name != "word/document.xml" {
				continue
			}
			switch token := token.(type) {
			case xml.StartElement:
				if token.Name.Local == "tab" && len(token.Attr) == 0 {
					paragraph.WriteString("\t")
				}
			case xml.CharData:
				paragraph.Write(token)
			case xml.EndElement:
				if token.Name.Local == "p" {
					paragraphs = append(paragraphs, strings.TrimPrefix(paragraph.String(), "\n"))
					paragraph.Reset()
				}
			}
		}
	}
	return paragraphs, document, links
}

func TestADocumentForWordProcessorsHasTheWholeText(t *testing.T) {
	file, err := Word(t.Context(), "Tides & ebbs", report)
	if err != nil {
		t.Fatal(err)
	}
	paragraphs, document, links := wordText(t, file)
	want := []string{
		"Tides & ebbs", "A note [1]", "Spring tides rise fall by 12 m [1]. See the table or this. Entities & escapes *stay*.", "1.\tone", "•\tinner", "2.\ttwo",
		"a", "b", "1", "<b>2</b>", "", "if a < b {", "\tc()", "}", "المصادر", "مصدر واحد.", "<script>alert(1)</script>", "<pre>", "kept", "</pre>",
	}
	if strings.Join(paragraphs, "|") != strings.Join(want, "|") {
		t.Errorf("%q", paragraphs)
	}
	for _, part := range []string{`<w:pStyle w:val="Heading1"/>`, `<w:pStyle w:val="Quote"/>`, `<w:b/>`, `<w:strike/>`, `<w:bidi/>`, `<w:rtl/>`, `w:left="720" w:hanging="360"`} {
		if !strings.Contains(document, part) {
			t.Errorf("the document has no %s", part)
		}
	}
	if strings.Count(links, "TargetMode") != 1 || !strings.Contains(links, `Target="https://tides.example/a?b=1&amp;c"`) {
		t.Errorf("%s", links)
	}
	again, err := Word(t.Context(), "Tides & ebbs", report)
	if err != nil || !bytes.Equal(file, again) {
		t.Errorf("a second file differs (%v)", err)
	}
}

func TestADocumentForWordProcessorsHasFormulasAsTheyAreWritten(t *testing.T) {
	source := `A \(a_1 * b_2\) and $c*d*e$ and ` + "`$f$`" + ` and [x](https://a.example/$g$).

\[\begin{pmatrix} a & b \\ c & d \end{pmatrix}\]`
	file, err := Word(t.Context(), "", source)
	if err != nil {
		t.Fatal(err)
	}
	paragraphs, _, links := wordText(t, file)
	want := `A \(a_1 * b_2\) and $c*d*e$ and $f$ and x.|\[\begin{pmatrix} a & b \\ c & d \end{pmatrix}\]`
	if got := strings.Join(paragraphs, "|"); got != want || !strings.Contains(links, `Target="https://a.example/$g$"`) {
		t.Errorf("%s, links %s", got, links)
	}
}

// An address that is defined once can be that of thousands of links.
func TestAFileHasEachAddressOnce(t *testing.T) {
	address := "https://a.example/" + strings.Repeat("a", maxAddress/2)
	file, err := Word(t.Context(), "", strings.Repeat("[x]\n\n", 3000)+"[x]: "+address+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, document, links := wordText(t, file); strings.Count(links, address) != 1 || strings.Count(document, `<w:hyperlink r:id="rId2">`) != 3000 {
		t.Errorf("%d bytes of links", len(links))
	}
	page, err := HTML(t.Context(), "", strings.Repeat("[x]\n\n", 3000)+"[x]: "+address+strings.Repeat("a", maxAddress)+"\n")
	if err != nil || len(page) > 100_000 {
		t.Errorf("a page has %d bytes, %v", len(page), err)
	}
}

func TestAPageHasTheWholeTextAndNothingThatRuns(t *testing.T) {
	page, err := HTML(t.Context(), "Tides </title><script>", report)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<h1>Tides &amp; <em>ebbs</em></h1>", "<h2>المصادر</h2>", "&lt;script&gt;alert(1)&lt;/script&gt;", `href="https://tides.example/a?b=1&amp;c"`, "<td>1</td>", "default-src &#39;none&#39;"} {
		if !strings.Contains(string(page), part) && !strings.Contains(string(page), strings.ReplaceAll(part, "&#39;", "'")) {
			t.Errorf("the page has no %s", part)
		}
	}
	for _, part := range []string{"<script", "javascript:", "<img", "src="} {
		if strings.Contains(string(page), part) {
			t.Errorf("the page has %s: %s", part, page)
		}
	}
}

// What cannot be converted in bounded time is in the file as it is.
func TestAFileOfHostileMarkdownIsPlain(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, source := range []string{
		strings.Repeat("[a](", 100_000), strings.Repeat(">", 100_000) + "x", strings.Repeat("*a_", 200_000), "a" + strings.Repeat("`", 500_000), strings.Repeat("a\x00\x0b\n", 10_000),
		strings.Repeat("- a\n  ", 100_000), "|" + strings.Repeat("a|", 50_000) + "\n|" + strings.Repeat("-|", 50_000) + "\n|a|\n",
	} {
		file, err := Word(t.Context(), "", source)
		if err != nil {
			t.Fatal(err)
		}
		paragraphs, _, _ := wordText(t, file)
		if len(strings.Join(paragraphs, "")) < 5 {
			t.Errorf("%.20q has %d paragraphs", source, len(paragraphs))
		}
		if page, err := HTML(t.Context(), "", source); err != nil || len(page) < 1000 {
			t.Errorf("%.20q: %v", source, err)
		}
		if _, err := Word(ended, "", source); !errors.Is(err, context.Canceled) {
			t.Errorf("%.20q, for a request that has ended: %v", source, err)
		}
	}
}
