package extract_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"turnstone/providers/extract"
)

const outlook = "application/vnd.ms-outlook"

// storage is a folder of a compound file.
type storage struct {
	streams map[string]string
	folders map[string]storage
}

const (
	sectorSize, miniSize = 512, 64
	endOfChain, unused   = 0xFFFFFFFE, 0xFFFFFFFF
)

// compoundFile returns a compound file (MS-CFB, version 3). All streams are shorter than 4,096 bytes, so they are in the mini stream.
func compoundFile(root storage) string {
	type entry struct {
		name                       string
		kind                       byte
		left, right, child, sector uint32
		size                       int
	}
	entries := []entry{{name: "Root Entry", kind: 5, left: unused, right: unused, child: unused}}
	var mini bytes.Buffer
	var miniFAT []uint32
	var add func(parent int, s storage)
	add = func(parent int, s storage) {
		last := -1
		link := func(e entry) int {
			e.left, e.right = unused, unused
			entries = append(entries, e)
			at := len(entries) - 1
			if last < 0 {
				entries[parent].child = uint32(at)
			} else {
				entries[last].right = uint32(at)
			}
			last = at
			return at
		}
		for _, name := range sortedKeys(s.streams) {
			content := s.streams[name]
			e := entry{name: name, kind: 2, child: unused, sector: endOfChain, size: len(content)}
			if content != "" {
				e.sector = uint32(len(miniFAT))
				for at := 0; at < len(content); at += miniSize {
					miniFAT = append(miniFAT, uint32(len(miniFAT)+1))
					mini.WriteString(content[at:min(at+miniSize, len(content))])
					mini.Write(make([]byte, (miniSize-mini.Len()%miniSize)%miniSize))
				}
				miniFAT[len(miniFAT)-1] = endOfChain
			}
			link(e)
		}
		for _, name := range sortedKeys(s.folders) {
			at := link(entry{name: name, kind: 1, child: unused})
			add(at, s.folders[name])
		}
	}
	add(0, root)
	entries[0].size = mini.Len()
	var directory bytes.Buffer
	for len(entries)%4 != 0 {
		entries = append(entries, entry{left: unused, right: unused, child: unused})
	}
	sectors := func(bytes int) int { return (bytes + sectorSize - 1) / sectorSize }
	miniFATBytes := len(miniFAT) * 4
	firstMiniFAT := 1 + len(entries)*128/sectorSize // after the FAT and the directory
	firstMini := firstMiniFAT + sectors(miniFATBytes)
	entries[0].sector = uint32(firstMini)
	for _, e := range entries {
		record := make([]byte, 128)
		units := utf16.Encode([]rune(e.name))
		for i, u := range units {
			binary.LittleEndian.PutUint16(record[2*i:], u)
		}
		if e.name != "" {
			binary.LittleEndian.PutUint16(record[64:], uint16(2*len(units)+2))
		}
		record[66], record[67] = e.kind, 1
		for i, v := range []uint32{e.left, e.right, e.child} {
			binary.LittleEndian.PutUint32(record[68+4*i:], v)
		}
		binary.LittleEndian.PutUint32(record[116:], e.sector)
		binary.LittleEndian.PutUint32(record[120:], uint32(e.size))
		directory.Write(record)
	}
	fat := []uint32{0xFFFFFFFD}
	for _, n := range []int{sectors(directory.Len()), sectors(miniFATBytes), sectors(mini.Len())} {
		for i := range n {
			next := uint32(len(fat) + 1)
			if i == n-1 {
				next = endOfChain
			}
			fat = append(fat, next)
		}
	}
	if len(fat) > sectorSize/4 {
		panic("too large for one sector of the FAT")
	}
	header := make([]byte, sectorSize)
	copy(header, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	put16, put32 := binary.LittleEndian.PutUint16, binary.LittleEndian.PutUint32
	put16(header[24:], 0x3E)
	put16(header[26:], 3)
	put16(header[28:], 0xFFFE)
	put16(header[30:], 9)
	put16(header[32:], 6)
	put32(header[44:], 1)
	put32(header[48:], 1) // the directory
	put32(header[56:], 4096)
	put32(header[60:], uint32(firstMiniFAT))
	put32(header[64:], uint32(sectors(miniFATBytes)))
	put32(header[68:], endOfChain)
	for i := range 109 {
		put32(header[76+4*i:], unused)
	}
	put32(header[76:], 0) // the FAT
	file := bytes.NewBuffer(header)
	table := func(values []uint32) {
		content := bytes.Repeat([]byte{0xFF}, sectors(len(values)*4)*sectorSize)
		for i, v := range values {
			put32(content[4*i:], v)
		}
		file.Write(content)
	}
	table(fat)
	file.Write(directory.Bytes())
	table(miniFAT)
	file.Write(mini.Bytes())
	file.Write(make([]byte, (sectorSize-mini.Len()%sectorSize)%sectorSize))
	return file.String()
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// wide encodes a text as properties of Outlook do.
func wide(text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// sent returns the properties of a fixed length of a mail of 2 March 2026, 09:30.
func sent(header int) string {
	entry := binary.LittleEndian.AppendUint32(nil, 0x00390040)
	entry = binary.LittleEndian.AppendUint32(entry, 6)
	entry = binary.LittleEndian.AppendUint64(entry, 116444736000000000+1772443800*1e7)
	return strings.Repeat("\x00", header) + string(entry)
}

func mailOfOutlook() storage {
	const p = "__substg1.0_"
	return storage{
		streams: map[string]string{
			"__properties_version1.0": sent(32), p + "0037001F": wide("Tides 潮"), p + "0C1A001F": wide("Ada"), p + "5D01001F": wide("ada@example.org"),
			p + "0E04001F": wide("Bob; Cem"), p + "1000001F": wide("The ebb is at six.\r\nSee the files."), p + "10090102": "LZFu",
		},
		folders: map[string]storage{
			"__recip_version1.0_#00000000": {streams: map[string]string{p + "3001001F": wide("Bob")}},
			"__attach_version1.0_#00000000": {streams: map[string]string{
				p + "3707001F": wide("tides.csv"), p + "370E001F": wide("text/csv"), p + "37010102": "harbour,ebb\nNorth,6\n",
			}},
			"__attach_version1.0_#00000001": {streams: map[string]string{p + "3704001E": "clip.mp4", p + "37010102": "\x00\x01"}},
			"__attach_version1.0_#00000002": {folders: map[string]storage{p + "3701000D": {streams: map[string]string{
				"__properties_version1.0": sent(24), p + "0037001F": wide("Inner"), p + "10130102": "<p>The <b>flood</b>",
			}}}},
		},
	}
}

func TestMailsOfOutlookAreRead(t *testing.T) {
	const head = `From: Ada <ada@example.org>\nTo: Bob; Cem\nDate: Mon, 02 Mar 2026 09:30:00 +0000\nSubject: Tides 潮\n\n`
	onlyRTF := mailOfOutlook()
	delete(onlyRTF.streams, "__substg1.0_1000001F")
	onlyRTF.folders = nil
	whole := compoundFile(mailOfOutlook())
	for _, c := range []struct{ name, content, want string }{
		{"with a table, a film and a mail", whole, `done [unread_members 1] of 4 chapter 1 (Tides 潮) "` + head + `The ebb is at six.\nSee the files.\n" chapter 2 (tides.csv) "Attachment: tides.csv (text/csv, 20 bytes)\nharbour,ebb\nNorth,6\n" chapter 3 (clip.mp4) "Attachment: clip.mp4 (application/octet-stream, 2 bytes)\n" chapter 4 (Inner) "Date: Mon, 02 Mar 2026 09:30:00 +0000\nSubject: Inner\n\nThe **flood**\n"`},
		{"with only RTF", compoundFile(onlyRTF), `done [missing_parts 1] of 1 chapter 1 (Tides 潮) "` + head + `"`},
		{"another document", compoundFile(storage{streams: map[string]string{"WordDocument": "x"}}), `failed damaged`},
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
