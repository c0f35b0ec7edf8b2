package extracttest

import (
	"encoding/base64"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

// Mail returns a mail with headers and a body, whose lines end with \r\n.
func Mail(header, body string) string {
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

// mails are mails and saved pages.
func mails() []Row {
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	sjis := encodedAs(japanese.ISO2022JP, "お世話になっております。")
	alternatives, both := mixed("alternative", "Content-Type: text/plain\n\nTides", "Content-Type: text/html\n\n<p>Tides")
	onlyHTML, one := mixed("alternative", "Content-Type: text/html; charset=windows-1251\n\n<p><b>"+encodedAs(charmap.Windows1251, "Имя")+"</b>")
	attachedWord, attachedPDF := Word(Paragraph("Tides")), OnePage("x")
	files, members := mixed("mixed", "Content-Type: text/plain\n\nSee the files.",
		"Content-Type: application/octet-stream; name=\"a.docx\"\nContent-Disposition: attachment; filename=\"a.docx\"\nContent-Transfer-Encoding: base64\n\n"+encoded(attachedWord),
		"Content-Type: text/csv\nContent-Disposition: attachment; filename*=utf-8''b%C3%A9.csv\n\na,b",
		"Content-Type: application/pdf; name=c.pdf\nContent-Transfer-Encoding: base64\n\n"+encoded(attachedPDF),
		"Content-Type: image/png\nContent-ID: <logo>\n\nx",
		"Content-Type: message/rfc822\n\nSubject: Inner\n\nEbb")
	_, unfinished := mixed("mixed", "Content-Type: text/plain\n\nTides")
	const from = `From: Ada <ada@example.org>\nTo: bob@example.org\n`
	rows := []Row{
		{"mail, plain", eml, Mail("Subject: Tides", "come\n"), `done of 1 chapter 1 (Tides) "` + from + `Subject: Tides\n\ncome\n"`},
		{"mail, words of headers", eml, Mail("Subject: =?ISO-8859-1?Q?Caf=E9?= =?UTF-8?B?5r2u?=", "x"), `done of 1 chapter 1 (Café潮) "` + from + `Subject: Café潮\n\nx\n"`},
		{"mail, quoted-printable", eml, Mail("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable", "caf=C3=A9 =\nau lait"), `done of 1 chapter 1 "` + from + `\ncafé au lait\n"`},
		{"mail, ISO-2022-JP", eml, Mail("Content-Type: text/plain; charset=ISO-2022-JP", sjis), `done of 1 chapter 1 "` + from + `\nお世話になっております。\n"`},
		{"mail, alternatives", eml, Mail(alternatives, both), `done of 1 chapter 1 "` + from + `\nTides\n"`},
		{"mail, only HTML", eml, Mail(onlyHTML, one), `done of 1 chapter 1 "` + from + `\n**Имя**\n"`},
		{"mail, attachments", eml, Mail(files, members), `done [unread_members 1] of 5 chapter 1 "` + from + `\nSee the files.\n" chapter 2 (a.docx) "Attachment: a.docx (` + docx + `, ` + strconv.Itoa(len(attachedWord)) + ` bytes)\nTides\n" chapter 3 (bé.csv) "Attachment: bé.csv (text/csv, 3 bytes)\na,b\n" chapter 4 (c.pdf) "Attachment: c.pdf (application/pdf, ` + strconv.Itoa(len(attachedPDF)) + ` bytes)\n" chapter 5 (Inner) "Subject: Inner\n\nEbb\n"`},
		{"mail, without its end", eml, Mail(files, strings.TrimSuffix(unfinished, "--b--\n")), `done [missing_parts 1] of 1 chapter 1 "` + from + `\nTides\n"`},
		{"mail, damaged base64", eml, Mail("Content-Type: text/plain\nContent-Transfer-Encoding: base64", encoded("Tides come. ")+"?*?*"+encoded("Tides go.")), `done [missing_parts 1] of 1 chapter 1 "` + from + `\nTides come.\n"`},
		{"mail, without its parts", eml, Mail(files, "x"), `done [missing_parts 1] of 1 chapter 1 "` + from + `\n"`},
		{"mail, of a mailbox", eml, "From ada Mon Jan 1\n" + Mail("", "x"), `done of 1 chapter 1 "` + from + `\n\nx\n"`},
		{"mail, a text", eml, "Tides come\n\nand go", `failed damaged`},
		{"mail, empty", eml, "", `failed damaged`},
	}
	nested := "Subject: x\r\n\r\nend"
	for range 20 {
		nested = "Content-Type: message/rfc822\r\n\r\n" + nested
	}
	header, body := mixed("related; type=\"text/html\"", "Content-Type: text/html; charset=utf-8\nContent-Location: https://e.org/\nContent-Transfer-Encoding: quoted-printable\n\n<h1>Tides</h1><p style=3D\"display:none\">x</p><p>come</p>",
		"Content-Type: text/css\nContent-Location: https://e.org/a.css\n\np{}", "Content-Type: image/png\nContent-Location: https://e.org/a.png\n\nx")
	page := strings.ReplaceAll(header+"\n\n"+body, "\n", "\r\n")
	return append(rows, Row{"mail, nested", eml, nested, `failed too_complex`}, Row{"saved page", mhtml, page, `done [hidden 1] "# Tides\n\ncome\n"`})
}

// richTexts are documents of RTF and notebooks.
func richTexts() []Row {
	return []Row{
		{"rtf", rtf, `{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title No}}\f0 Tides \b come\b0\par and\line go\tab x\par}`, `done "Tides come\nand\ngo\tx\n"`},
		{"rtf, characters beyond its code page", rtf, `{\rtf1\ansi caf\'e9 \u28526?\u27728?\par\u-10179?\u-8704?}`, `done "café 潮汐\n😀\n"`},
		{"rtf, Japanese", rtf, `{\rtf1\ansi\ansicpg932 \'82\'a8\'90\'a2\'98\'62}`, `done "お世話\n"`},
		{"rtf, fonts with other code pages", rtf, `{\rtf1\ansi{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f0 e\'e9{\f1 \'c8\'ec\'ff}\'e9}`, `done "eéИмяé\n"`},
		{"rtf, hidden text", rtf, `{\rtf1\ansi a{\v hidden}{\*\unknown no}{\pict\bin3 }}}}b\emdash\lquote\~c}`, "done [hidden 1] \"ab—‘\\u00a0c\\n\""},
		{"rtf, a table, a link and a note", rtf, `{\rtf1\trowd\intbl a\cell b\cell\row\pard{\field{\*\fldinst HYPERLINK "x"}{\fldrslt link}}\par{\footnote Moon}}`, `done "a\tb\nlink\n Moon\n"`},
		{"rtf, a header and an object within a paragraph", rtf, `{\rtf1 a{\header Draft\par}b{\object\objemb{\*\objclass X}{\*\objdata 00}{\result shown}}\par}`, `done "abshown\nDraft\n"`},
		{"rtf, no replacements", rtf, `{\rtf1\uc0\u28526\u27728{\uc2\u28526??}x}`, `done "潮汐潮x\n"`},
		{"rtf, cut", rtf, `{\rtf1 cut {\b te`, `done "cut te\n"`},
		{"rtf, a text", rtf, `Tides`, `failed damaged`},
		{"rtf, nested", rtf, `{\rtf1` + strings.Repeat("{", 300), `failed too_complex`},
		{"notebook", ipynb, `{"cells":[{"cell_type":"markdown","source":["# Tides\n","come"]},{"cell_type":"code","source":"print(1)","outputs":[{"output_type":"stream","text":["1\n"]},{"data":{"image/png":"x","text/plain":"<Figure>"}},{"traceback":["\u001b[31mError\u001b[0m"]}]},{"cell_type":"code","source":"","outputs":[]}],"metadata":{"language_info":{"name":"python"}}}`, "done [unread_members 1] \"# Tides\\ncome\\n\\n```python\\nprint(1)\\n```\\n\\n```output\\n1\\n```\\n\\n```output\\n<Figure>\\n```\\n\\n```output\\nError\\n```\\n\""},
		{"notebook, outputs of other types", ipynb, `{"cells":[{"cell_type":"code","source":"1","outputs":[{"data":{"text/latex":"$x$"}},{"data":{"application/json":{"k":1}}}]}]}`, "done [unread_members 1] \"```\\n1\\n```\\n\\n```output\\n$x$\\n```\\n\""},
		{"notebook of version 3", ipynb, `{"worksheets":[{"cells":[{"cell_type":"heading","level":2,"source":"Tides"},{"cell_type":"code","input":"1","language":"python","outputs":[{"text":"1","png":"x"}]}]}]}`, "done [unread_members 1] \"## Tides\\n\\n```\\n1\\n```\\n\\n```output\\n1\\n```\\n\""},
		{"notebook, empty", ipynb, `{"cells":[]}`, `done`},
		{"notebook, another document", ipynb, `{"a":1}`, `failed damaged`},
		{"notebook, cut", ipynb, `{"cells":`, `failed damaged`},
		{"notebook, other outputs", ipynb, `{"cells":[{"cell_type":"code","source":{"a":1},"outputs":[{"data":{"text/html":"<b>x</b>","application/json":{"a":1}}}]}]}`, "done \"```output\\n**x**\\n```\\n\""},
	}
}

// outlookMails are mails of Outlook.
func outlookMails() []Row {
	const first = `From: Ada <ada@example.org>\nTo: Bob; Cem\nDate: Mon, 02 Mar 2026 09:30:00 +0000\nSubject: Tides 潮\n\n`
	onlyRTF := OutlookMail()
	delete(onlyRTF.Streams, "__substg1.0_1000001F")
	onlyRTF.Folders = nil
	whole := CompoundFile(OutlookMail())
	rows := []Row{
		{"outlook, with a table, a film and a mail", outlook, whole, `done [unread_members 1] of 4 chapter 1 (Tides 潮) "` + first + `The ebb is at six.\nSee the files.\n" chapter 2 (tides.csv) "Attachment: tides.csv (text/csv, 20 bytes)\nharbour,ebb\nNorth,6\n" chapter 3 (clip.mp4) "Attachment: clip.mp4 (application/octet-stream, 2 bytes)\n" chapter 4 (Inner) "Date: Mon, 02 Mar 2026 09:30:00 +0000\nSubject: Inner\n\nThe **flood**\n"`},
		{"outlook, with only RTF", outlook, CompoundFile(onlyRTF), `done [missing_parts 1] of 1 chapter 1 (Tides 潮) "` + first + `"`},
		{"outlook, another document", outlook, CompoundFile(Storage{Streams: map[string]string{"WordDocument": "x"}}), `failed damaged`},
		{"outlook, cut", outlook, whole[:600], `failed damaged`},
		{"outlook, a text", outlook, "From: a@b", `failed damaged`},
	}
	attached := Mail("Content-Type: application/vnd.ms-outlook; name=a.msg\nContent-Transfer-Encoding: base64", base64.StdEncoding.EncodeToString([]byte(whole)))
	return append(rows, Row{"mail, of Outlook in it", eml, attached, `done [unread_members 1] of 6 429 bytes, 6 blocks`})
}
