package extracttest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
)

// Storage is a folder of a compound file.
type Storage struct {
	Streams map[string]string
	Folders map[string]Storage
}

const (
	sectorSize, miniSize = 512, 64
	endOfChain, unused   = 0xFFFFFFFE, 0xFFFFFFFF
)

// CompoundFile returns a compound file (MS-CFB, version 3). All streams are shorter than 4,096 bytes, so they are in the mini stream.
func CompoundFile(root Storage) string {
	type entry struct {
		name                       string
		kind                       byte
		left, right, child, sector uint32
		size                       int
	}
	entries := []entry{{name: "Root Entry", kind: 5, left: unused, right: unused, child: unused}}
	var mini bytes.Buffer
	var miniFAT []uint32
	var add func(parent int, s Storage)
	add = func(parent int, s Storage) {
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
		for _, name := range sortedKeys(s.Streams) {
			content := s.Streams[name]
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
		for _, name := range sortedKeys(s.Folders) {
			at := link(entry{name: name, kind: 1, child: unused})
			add(at, s.Folders[name])
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

// OutlookMail returns a mail of Outlook with a table, a film and another mail.
func OutlookMail() Storage {
	const p = "__substg1.0_"
	return Storage{
		Streams: map[string]string{
			"__properties_version1.0": sent(32), p + "0037001F": wide("Tides 潮"), p + "0C1A001F": wide("Ada"), p + "5D01001F": wide("ada@example.org"),
			p + "0E04001F": wide("Bob; Cem"), p + "1000001F": wide("The ebb is at six.\r\nSee the files."), p + "10090102": "LZFu",
		},
		Folders: map[string]Storage{
			"__recip_version1.0_#00000000": {Streams: map[string]string{p + "3001001F": wide("Bob")}},
			"__attach_version1.0_#00000000": {Streams: map[string]string{
				p + "3707001F": wide("tides.csv"), p + "370E001F": wide("text/csv"), p + "37010102": "harbour,ebb\nNorth,6\n",
			}},
			"__attach_version1.0_#00000001": {Streams: map[string]string{p + "3704001E": "clip.mp4", p + "37010102": "\x00\x01"}},
			"__attach_version1.0_#00000002": {Folders: map[string]Storage{p + "3701000D": {Streams: map[string]string{
				"__properties_version1.0": sent(24), p + "0037001F": wide("Inner"), p + "10130102": "<p>The <b>flood</b>",
			}}}},
		},
	}
}
