package extract_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"

	"turnstone/providers/extract"
)

var sizes = regexp.MustCompile(`\d{3,} bytes`)

const (
	eml   = "message/rfc822"
	mhtml = "multipart/related"
	rtf   = "application/rtf"
	ipynb = "application/x-ipynb+json"
)

// mail returns a mail with headers and a body, whose lines end with \r\n.
func mail(header, body string) string {
	return strings.ReplaceAll("From: Ada <ada@example.org>\nTo: bob@example.org\nReceived: from a by b\n"+header+"\n\n"+body, "\n", "\r\n")
}

// mixed returns the header and the body of a mail of parts.
func mixed(kind string, parts ...string) (header, body string) {
	var b strings.Builder
	for _, one := range parts {
		b.WriteString("--b\n" + one + "\n")
	}
	return "MIME-Version: 1.0\nContent-Type: multipart/" + kind + "; boundary=b", b.String() + "--b--\n"
}

func TestMailsAreRead(t *testing.T) {
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	sjis := encodedAs(japanese.ISO2022JP, "お世話になっております。")
	alternatives, both := mixed("alternative", "Content-Type: text/plain\n\nTides", "Content-Type: text/html\n\n<p>Tides")
	onlyHTML, one := mixed("alternative", "Content-Type: text/html; charset=windows-1251\n\n<p><b>"+encodedAs(charmap.Windows1251, "Имя")+"</b>")
	files, members := mixed("mixed", "Content-Type: text/plain\n\nSee the files.",
		"Content-Type: application/octet-stream; name=\"a.docx\"\nContent-Disposition: attachment; filename=\"a.docx\"\nContent-Transfer-Encoding: base64\n\n"+encoded(word(paragraph("Tides"))),
		"Content-Type: text/csv\nContent-Disposition: attachment; filename*=utf-8''b%C3%A9.csv\n\na,b",
		"Content-Type: application/pdf; name=c.pdf\nContent-Transfer-Encoding: base64\n\n"+encoded(onePage("x")),
		"Content-Type: image/png\nContent-ID: <logo>\n\nx",
		"Content-Type: message/rfc822\n\nSubject: Inner\n\nEbb")
	_, unfinished := mixed("mixed", "Content-Type: text/plain\n\nTides")
	const from = `From: Ada <ada@example.org>\nTo: bob@example.org\n`
	for _, c := range []struct{ name, content, want string }{
		{"plain", mail("Subject: Tides", "come\n"), `done of 1 chapter 1 (Tides) "` + from + `Subject: Tides\n\ncome\n"`},
		{"words of headers", mail("Subject: =?ISO-8859-1?Q?Caf=E9?= =?UTF-8?B?5r2u?=", "x"), `done of 1 chapter 1 (Café潮) "` + from + `Subject: Café潮\n\nx\n"`},
		{"quoted-printable", mail("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable", "caf=C3=A9 =\nau lait"), `done of 1 chapter 1 "` + from + `\ncafé au lait\n"`},
		{"ISO-2022-JP", mail("Content-Type: text/plain; charset=ISO-2022-JP", sjis), `done of 1 chapter 1 "` + from + `\nお世話になっております。\n"`},
		{"alternatives", mail(alternatives, both), `done of 1 chapter 1 "` + from + `\nTides\n"`},
		{"only HTML", mail(onlyHTML, one), `done of 1 chapter 1 "` + from + `\n**Имя**\n"`},
		{"attachments", mail(files, members), `done [unread_members 1] of 5 chapter 1 "` + from + `\nSee the files.\n" chapter 2 (a.docx) "Attachment: a.docx (` + docx + `, SIZE bytes)\nTides\n" chapter 3 (bé.csv) "Attachment: bé.csv (text/csv, 3 bytes)\na,b\n" chapter 4 (c.pdf) "Attachment: c.pdf (application/pdf, SIZE bytes)\n" chapter 5 (Inner) "Subject: Inner\n\nEbb\n"`},
		{"without its end", mail(files, strings.TrimSuffix(unfinished, "--b--\n")), `done [missing_parts 1] of 1 chapter 1 "` + from + `\nTides\n"`},
		{"damaged base64", mail("Content-Type: text/plain\nContent-Transfer-Encoding: base64", encoded("Tides come. ")+"?*?*"+encoded("Tides go.")), `done [missing_parts 1] of 1 chapter 1 "` + from + `\nTides come.\n"`},
		{"without its parts", mail(files, "x"), `done [missing_parts 1] of 1 chapter 1 "` + from + `\n"`},
		{"of a mailbox", "From ada Mon Jan 1\n" + mail("", "x"), `done of 1 chapter 1 "` + from + `\n\nx\n"`},
		{"a text", "Tides come\n\nand go", `failed damaged`},
		{"empty", "", `failed damaged`},
	} {
		got, err := readWith(t, extract.New(command("read")...), c.content, eml)
		if err != nil {
			t.Fatal(err)
		}
		if s := summary(got); sizes.ReplaceAllString(s, "SIZE bytes") != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, s, c.want)
		}
	}
	nested := "Subject: x\r\n\r\nend"
	for range 20 {
		nested = "Content-Type: message/rfc822\r\n\r\n" + nested
	}
	if got, err := readWith(t, extract.New(command("read")...), nested, eml); err != nil || summary(got) != `failed too_complex` {
		t.Errorf("nested: %s, %v", summary(got), err)
	}
}

func TestSavedPagesAreRead(t *testing.T) {
	header, body := mixed("related; type=\"text/html\"", "Content-Type: text/html; charset=utf-8\nContent-Location: https://e.org/\nContent-Transfer-Encoding: quoted-printable\n\n<h1>Tides</h1><p style=3D\"display:none\">x</p><p>come</p>",
		"Content-Type: text/css\nContent-Location: https://e.org/a.css\n\np{}", "Content-Type: image/png\nContent-Location: https://e.org/a.png\n\nx")
	x, err := readWith(t, extract.New(command("read")...), strings.ReplaceAll(header+"\n\n"+body, "\n", "\r\n"), mhtml)
	if err != nil || summary(x) != `done [hidden 1] "# Tides\n\ncome\n"` {
		t.Errorf("%s, %v", summary(x), err)
	}
}

func TestRichTextIsRead(t *testing.T) {
	for content, want := range map[string]string{
		`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title No}}\f0 Tides \b come\b0\par and\line go\tab x\par}`:  `done "Tides come\nand\ngo\tx\n"`,
		`{\rtf1\ansi caf\'e9 \u28526?\u27728?\par\u-10179?\u-8704?}`:                                                      `done "café 潮汐\n😀\n"`,
		`{\rtf1\ansi\ansicpg932 \'82\'a8\'90\'a2\'98\'62}`:                                                                `done "お世話\n"`,
		`{\rtf1\ansi{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f0 e\'e9{\f1 \'c8\'ec\'ff}\'e9}`:                     `done "eéИмяé\n"`,
		`{\rtf1\ansi a{\v hidden}{\*\unknown no}{\pict\bin3 }}}}b\emdash\lquote\~c}`:                                      "done [hidden 1] \"ab—‘\\u00a0c\\n\"",
		`{\rtf1\trowd\intbl a\cell b\cell\row\pard{\field{\*\fldinst HYPERLINK "x"}{\fldrslt link}}\par{\footnote Moon}}`: `done "a\tb\nlink\n Moon\n"`,
		`{\rtf1\uc0\u28526\u27728{\uc2\u28526??}x}`:                                                                       `done "潮汐潮x\n"`,
		`{\rtf1 cut {\b te`:                 `done "cut te\n"`,
		`Tides`:                             `failed damaged`,
		`{\rtf1` + strings.Repeat("{", 300): `failed too_complex`,
	} {
		if x, err := readWith(t, extract.New(command("read")...), content, rtf); err != nil || summary(x) != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", content[:min(len(content), 60)], summary(x), err, want)
		}
	}
}

func TestNotebooksAreRead(t *testing.T) {
	for content, want := range map[string]string{
		`{"cells":[{"cell_type":"markdown","source":["# Tides\n","come"]},{"cell_type":"code","source":"print(1)","outputs":[{"output_type":"stream","text":["1\n"]},{"data":{"image/png":"x","text/plain":"<Figure>"}},{"traceback":["\u001b[31mError\u001b[0m"]}]},{"cell_type":"code","source":"","outputs":[]}],"metadata":{"language_info":{"name":"python"}}}`: "done [unread_members 1] \"# Tides\\ncome\\n\\n```python\\nprint(1)\\n```\\n\\n```output\\n1\\n```\\n\\n```output\\n<Figure>\\n```\\n\\n```output\\nError\\n```\\n\"",
		`{"worksheets":[{"cells":[{"cell_type":"heading","level":2,"source":"Tides"},{"cell_type":"code","input":"1","language":"python","outputs":[{"text":"1","png":"x"}]}]}]}`:                                                                                                                                                                                    "done [unread_members 1] \"## Tides\\n\\n```\\n1\\n```\\n\\n```output\\n1\\n```\\n\"",
		`{"cells":[]}`: `done`,
		`{"a":1}`:      `failed damaged`,
		`{"cells":`:    `failed damaged`,
		`{"cells":[{"cell_type":"code","source":{"a":1},"outputs":[{"data":{"text/html":"<b>x</b>","application/json":{"a":1}}}]}]}`: "done \"```output\\n**x**\\n```\\n\"",
	} {
		if x, err := readWith(t, extract.New(command("read")...), content, ipynb); err != nil || summary(x) != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", content, summary(x), err, want)
		}
	}
}
