package extract_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"turnstone/providers/extract"
	"turnstone/providers/extract/extracttest"
)

const outlook = "application/vnd.ms-outlook"

func TestMailsOfOutlookAreRead(t *testing.T) {
	const head = `From: Ada <ada@example.org>\nTo: Bob; Cem\nDate: Mon, 02 Mar 2026 09:30:00 +0000\nSubject: Tides 潮\n\n`
	onlyRTF := extracttest.OutlookMail()
	delete(onlyRTF.Streams, "__substg1.0_1000001F")
	onlyRTF.Folders = nil
	whole := extracttest.CompoundFile(extracttest.OutlookMail())
	for _, c := range []struct{ name, content, want string }{
		{"with a table, a film and a mail", whole, `done [unread_members 1] of 4 chapter 1 (Tides 潮) "` + head + `The ebb is at six.\nSee the files.\n" chapter 2 (tides.csv) "Attachment: tides.csv (text/csv, 20 bytes)\nharbour,ebb\nNorth,6\n" chapter 3 (clip.mp4) "Attachment: clip.mp4 (application/octet-stream, 2 bytes)\n" chapter 4 (Inner) "Date: Mon, 02 Mar 2026 09:30:00 +0000\nSubject: Inner\n\nThe **flood**\n"`},
		{"with only RTF", extracttest.CompoundFile(onlyRTF), `done [missing_parts 1] of 1 chapter 1 (Tides 潮) "` + head + `"`},
		{"another document", extracttest.CompoundFile(extracttest.Storage{Streams: map[string]string{"WordDocument": "x"}}), `failed damaged`},
		{"cut", whole[:600], `failed damaged`},
		{"a text", "From: a@b", `failed damaged`},
	} {
		got, err := readWith(t, extract.New(command("read")...), c.content, outlook)
		if err != nil || summary(got) != c.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", c.name, summary(got), err, c.want)
		}
	}
	attached := mail("Content-Type: application/vnd.ms-outlook; name=a.msg\nContent-Transfer-Encoding: base64", base64.StdEncoding.EncodeToString([]byte(whole)))
	if got, err := readWith(t, extract.New(command("read")...), attached, eml); err != nil || !strings.Contains(got.Text, "The ebb is at six.") {
		t.Errorf("attached: %s, %v", summary(got), err)
	}
}
