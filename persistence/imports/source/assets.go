package source

import (
	"archive/zip"
	"crypto/sha256"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// assets are the files of an archive of ChatGPT that its conversations name.
type assets struct {
	ids   map[string]protocol.FileID // by the identifiers of ChatGPT
	files []asset                    // in the order of the archive
	names map[string]string          // of the originals, by the names in the archive

	entries map[*zip.File]bool // those of files
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
	datedByArchive = 1990    // the first year; an archive without times has older ones
)

// findAssets finds the files of an archive that conversations can name.
func (u *unpacking) findAssets() *assets {
	found := &assets{ids: map[string]protocol.FileID{}, names: map[string]string{}, entries: map[*zip.File]bool{}}
	for _, file := range u.archive.File {
		name := assetName.FindStringSubmatch(path.Base(file.Name))
		if name == nil || file.FileInfo().IsDir() || found.ids[name[1]] != (protocol.FileID{}) {
			continue
		}
		id := protocol.FileID(foreignID(protocol.ImportFromChatGPT, name[1]))
		found.ids[name[1]], found.entries[file] = id, true
		found.files = append(found.files, asset{file, id, name[2]})
	}
	return found
}

// has reports whether a file of the archive is one of those, or has their names.
func (a *assets) has(file *zip.File) bool {
	return a != nil && (a.entries[file] || path.Base(file.Name) == assetNames && len(a.files) > 0)
}

// find returns the file that a conversation names.
func (a *assets) find(pointer string) (id protocol.FileID, has bool) {
	if a == nil {
		return id, false
	}
	pointer = clip(pointer, maxPointer)
	if _, name, is := strings.Cut(pointer, "://"); is { // after file-service, too
		pointer = name
	}
	id, has = a.ids[assetPointer.FindString(pointer)]
	return id, has
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
		ID: of.id, Name: clipRunes(path.Base(name), longName), MediaType: filetype.ByName(name), Size: int64(of.UncompressedSize64), //nolint:gosec // compared below
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
