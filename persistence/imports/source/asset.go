package source

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// assets are the files of an archive that its conversations name: those of ChatGPT by identifiers, the others by their names.
type assets struct {
	ids   map[string]protocol.FileID // by the identifiers of ChatGPT
	files []asset                    // in the order of the archive
	names map[string]string          // of the originals, by the names in the archive

	entries map[*zip.File]protocol.FileID // those of files

	from   *unpacking
	now    time.Time
	named  map[string][]*zip.File    // the other files, by the last parts of their names
	used   map[protocol.FileID]*File // those that conversations name
	parsed map[*zip.File]bool        // those that were read as exports
}

type asset struct {
	*zip.File
	id   protocol.FileID
	name string
}

// assetName has the identifier of a file, and what follows it in its name.
var assetName = regexp.MustCompile(`^(file[-_][0-9A-Za-z]+)(?:[-_](.*)|[.].*)?$`)

// assetPointer finds the identifier in an address such as sediment://file_0123.
var assetPointer = regexp.MustCompile(`file[-_][0-9A-Za-z]+`)

const (
	assetNames     = "conversation_asset_file_names.json"
	maxAssetNames  = 4 << 20 // bytes of the names of originals
	maxPointer     = 500     // bytes
	maxFolders     = 4       // of a path that are compared, with the name
	maxNamesakes   = 100     // files of one name; others are not found
	datedByArchive = 1990    // the first year; an archive without times has older ones
)

// findAssets finds the files of an archive that conversations can name.
func (u *unpacking) findAssets(now time.Time) *assets {
	found := &assets{
		ids: map[string]protocol.FileID{}, names: map[string]string{}, entries: map[*zip.File]protocol.FileID{},
		from: u, now: now, named: map[string][]*zip.File{}, used: map[protocol.FileID]*File{}, parsed: map[*zip.File]bool{},
	}
	for _, file := range u.archive.File {
		base := path.Base(file.Name)
		if file.FileInfo().IsDir() || names.MatchString(base) || base == assetNames {
			continue
		}
		if len(found.named[base]) < maxNamesakes {
			found.named[base] = append(found.named[base], file)
		}
		name := assetName.FindStringSubmatch(base)
		if name == nil || found.ids[name[1]] != (protocol.FileID{}) {
			continue
		}
		id := protocol.FileID(foreignID(protocol.ImportFromChatGPT, name[1]))
		found.ids[name[1]], found.entries[file] = id, id
		found.files = append(found.files, asset{file, id, name[2]})
	}
	return found
}

// has reports whether a file of the archive is one of those, or has their names.
func (a *assets) has(file *zip.File) bool {
	return a != nil && (a.entries[file] != (protocol.FileID{}) || path.Base(file.Name) == assetNames && len(a.files) > 0)
}

// find returns the file that a conversation names.
func (a *assets) find(pointer string) (id protocol.FileID, has bool) {
	if a == nil {
		return id, false
	}
	pointer = firstBytes(pointer, maxPointer)
	if _, name, is := strings.Cut(pointer, "://"); is { // after file-service, too
		pointer = name
	}
	id, has = a.ids[assetPointer.FindString(pointer)]
	return id, has
}

// byName returns the file that a conversation names by a path or its last part; nil: the archive does not have it, or has several.
func (a *assets) byName(pointer string) *zip.File {
	if a == nil || pointer == "" {
		return nil
	}
	pointer = firstBytes(pointer, maxPointer)
	if file := a.byPath(pointer); file != nil {
		return file
	}
	decoded, err := url.PathUnescape(pointer)
	if err != nil || decoded == pointer {
		return nil
	}
	return a.byPath(decoded)
}

// byPath returns the file whose name ends as a path does. The first folders of the path may be those of a server.
func (a *assets) byPath(pointer string) *zip.File {
	parts := strings.Split(path.Clean("/"+strings.ReplaceAll(pointer, `\`, "/")), "/")[1:]
	for first := max(0, len(parts)-maxFolders); first < len(parts); first++ {
		end := "/" + strings.Join(parts[first:], "/")
		var found *zip.File
		for _, file := range a.named[parts[len(parts)-1]] {
			switch {
			case !strings.HasSuffix("/"+file.Name, end):
			case found == nil:
				found = file
			case file.CRC32 != found.CRC32 || file.UncompressedSize64 != found.UncompressedSize64:
				return nil
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// attachNamed attaches the file with one of some names to a message, or adds a part that says that the archive does not have it.
func (c *Conversation) attachNamed(m *receiving, names ...string) {
	shown := ""
	for _, name := range names {
		if shown == "" {
			shown = path.Base(firstBytes(name, maxPointer))
		}
		file := m.files.byName(name)
		if file == nil {
			continue
		}
		id := m.files.entries[file]
		if id == (protocol.FileID{}) {
			id = namedID(path.Base(file.Name), file)
		}
		switch {
		case slices.Contains(m.Attachments, id):
			return
		case len(m.Attachments) == protocol.MaxAttachments || c.memory+messageOverhead > maxMemory:
			continue
		case m.files.entries[file] == (protocol.FileID{}) && m.files.used[id] == nil: // the others were passed to the handler
			f := m.files.file(m.files.from, &asset{File: file, id: id}, m.files.now)
			if !c.addFile(f, 0) {
				continue
			}
			m.files.used[id] = f
		}
		m.Attachments, c.memory = append(m.Attachments, id), c.memory+absentNotice
		return
	}
	if shown == "." || shown == "/" {
		shown = ""
	}
	m.Parts = append(m.Parts, c.absent(shown))
}

// read passes the files to the handler, before the conversations that name them.
func (a *assets) read(u *unpacking, to Handler, now time.Time) error {
	if len(a.files) == 0 {
		return nil
	}
	for _, file := range u.archive.File {
		if path.Base(file.Name) == assetNames {
			if err := u.unpack(file, to, a.readNames); err != nil {
				return err
			}
		}
	}
	for i := range a.files {
		if err := to.File(a.file(u, &a.files[i], now)); err != nil {
			return err
		}
	}
	return nil
}

// attached returns how many files, besides those of ChatGPT, conversations have by their names.
func (a *assets) attached() (count int) {
	for base, files := range a.named {
		for _, file := range files {
			if !a.parsed[file] && a.used[namedID(base, file)] != nil {
				count++
			}
		}
	}
	return count
}

// namedID identifies a file by its name and its content.
func namedID(base string, file *zip.File) protocol.FileID {
	return protocol.FileID(foreignID("archive", fmt.Sprintf("%s\x00%x\x00%d", base, file.CRC32, file.UncompressedSize64)))
}

// readNames reads the names of the originals. What is damaged has no name.
func (a *assets) readNames(from io.Reader) error {
	size := 0
	d := newDecoder(from, time.Time{})
	_ = d.members(func(name string) error { // a file without a name has that of the archive
		var original text
		err := d.value(&original)
		if size += len(name) + len(original); size <= maxAssetNames && original != "" {
			a.names[path.Base(name)] = clipRunes(string(original), longName)
		}
		return err
	})
	return nil
}

func (a *assets) file(u *unpacking, of *asset, now time.Time) *File {
	base := path.Base(of.Name)
	name := a.names[base]
	if name == "" {
		name = of.name
	}
	if name == "" {
		name = base
	}
	f := &File{
		ID: of.id, Name: clipRunes(path.Base(name), longName), MediaType: filetype.ByName(name), Size: int64(of.UncompressedSize64), // compared below
		Version: 1, Listed: true, CreatedAt: now,
	}
	if f.MediaType == "" {
		f.MediaType = filetype.OctetStream
	}
	if at := of.Modified; at.Year() >= datedByArchive {
		f.CreatedAt = bounded(at.UTC(), now, now)
	}
	f.UpdatedAt = f.CreatedAt
	switch {
	case f.Size < 1:
	case f.Size > u.left:
		f.OverLimit = true
	default:
		f.Open = func() (io.ReadCloser, error) { return u.open(of.File) }
	}
	return f
}

// foreignID returns an identifier for what another service names otherwise. It is the same in every import.
func foreignID(of protocol.ImportSource, id string) [16]byte {
	sum := sha256.Sum256([]byte(string(of) + "\x00" + id))
	made := [16]byte(sum[:16])
	const version, versionBits, variant, variantBits = 0x80, 0x0f, 0x80, 0x3f
	made[6], made[8] = made[6]&versionBits|version, made[8]&variantBits|variant // as a UUID of a kind of its own
	return made
}
