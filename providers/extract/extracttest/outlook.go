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
	entrySize            = 128
	endOfChain, unused   = 0xFFFFFFFE, 0xFFFFFFFF
)

var put16, put32 = binary.LittleEndian.PutUint16, binary.LittleEndian.PutUint32

// CompoundFile returns a compound file (MS-CFB, version 3). All streams are shorter than 4,096 bytes, so they are in the mini stream.
func CompoundFile(root Storage) string {
	c := &compound{entries: []entry{{name: "Root Entry", kind: 5, left: unused, right: unused, child: unused}}}
	c.add(0, root)
	for len(c.entries)%4 != 0 {
		c.entries = append(c.entries, entry{left: unused, right: unused, child: unused})
	}
	lengths := []int{len(c.entries) * entrySize, 4 * len(c.miniFAT), c.mini.Len()} // of what follows the FAT
	firstMiniFAT := 1 + sectors(lengths[0])
	c.entries[0].size, c.entries[0].sector = c.mini.Len(), uint32(firstMiniFAT+sectors(lengths[1]))
	file := bytes.NewBuffer(header(firstMiniFAT, sectors(lengths[1])))
	writeTable(file, chains(lengths))
	for _, e := range c.entries {
		file.Write(e.record())
	}
	writeTable(file, c.miniFAT)
	file.Write(c.mini.Bytes())
	file.Write(make([]byte, (sectorSize-c.mini.Len()%sectorSize)%sectorSize))
	return file.String()
}

func sectors(bytes int) int { return (bytes + sectorSize - 1) / sectorSize }

// compound has the parts of a compound file.
type compound struct {
	entries []entry // of the directory
	mini    bytes.Buffer
	miniFAT []uint32
}

// entry is a storage or a stream in the directory. The entries of a storage are a list: each is to the right of the one before.
type entry struct {
	name                       string
	kind                       byte
	left, right, child, sector uint32
	size                       int
}

// add adds the content of a storage, whose own entry exists.
func (c *compound) add(storage int, s Storage) {
	last := -1
	link := func(e entry) int {
		e.left, e.right = unused, unused
		c.entries = append(c.entries, e)
		at := len(c.entries) - 1
		if last < 0 {
			c.entries[storage].child = uint32(at)
		} else {
			c.entries[last].right = uint32(at)
		}
		last = at
		return at
	}
	for _, name := range sortedKeys(s.Streams) {
		content := s.Streams[name]
		link(entry{name: name, kind: 2, child: unused, sector: c.store(content), size: len(content)})
	}
	for _, name := range sortedKeys(s.Folders) {
		c.add(link(entry{name: name, kind: 1, child: unused}), s.Folders[name])
	}
}

// store adds a stream to the mini stream, and returns its first sector.
func (c *compound) store(content string) uint32 {
	if content == "" {
		return endOfChain
	}
	first := uint32(len(c.miniFAT))
	for at := 0; at < len(content); at += miniSize {
		c.miniFAT = append(c.miniFAT, uint32(len(c.miniFAT)+1))
		c.mini.WriteString(content[at:min(at+miniSize, len(content))])
		c.mini.Write(make([]byte, (miniSize-c.mini.Len()%miniSize)%miniSize))
	}
	c.miniFAT[len(c.miniFAT)-1] = endOfChain
	return first
}

// record returns the entry as it is written.
func (e *entry) record() []byte {
	record := make([]byte, entrySize)
	units := utf16.Encode([]rune(e.name))
	for i, u := range units {
		put16(record[2*i:], u)
	}
	if e.name != "" {
		put16(record[64:], uint16(2*len(units)+2))
	}
	record[66], record[67] = e.kind, 1
	for i, v := range []uint32{e.left, e.right, e.child} {
		put32(record[68+4*i:], v)
	}
	put32(record[116:], e.sector)
	put32(record[120:], uint32(e.size))
	return record
}

// chains returns the FAT: its own sector, and a chain for each of the parts that follow it.
func chains(lengths []int) []uint32 {
	fat := []uint32{0xFFFFFFFD}
	for _, length := range lengths {
		n := sectors(length)
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
	return fat
}

// header returns the header of a file with one sector of the FAT, which is the first.
func header(firstMiniFAT, miniFATSectors int) []byte {
	header := make([]byte, sectorSize)
	copy(header, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	put16(header[24:], 0x3E)
	put16(header[26:], 3)
	put16(header[28:], 0xFFFE)
	put16(header[30:], 9)
	put16(header[32:], 6)
	put32(header[44:], 1)
	put32(header[48:], 1) // the directory
	put32(header[56:], 4096)
	put32(header[60:], uint32(firstMiniFAT))
	put32(header[64:], uint32(miniFATSectors))
	put32(header[68:], endOfChain)
	for i := range 109 {
		put32(header[76+4*i:], unused)
	}
	put32(header[76:], 0) // the FAT
	return header
}

// writeTable writes numbers, and fills the last sector.
func writeTable(file *bytes.Buffer, values []uint32) {
	content := bytes.Repeat([]byte{0xFF}, sectors(len(values)*4)*sectorSize)
	for i, v := range values {
		put32(content[4*i:], v)
	}
	file.Write(content)
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
