package exports

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/wire"
)

// compression favours speed: a level with a better ratio would make the processor slower than most connections.
const compression = flate.BestSpeed

// Archive is a ZIP archive that is being written. For each file, it keeps about 200 bytes in memory until the end: the
// ZIP directory and the manifest, which name every file, come last.
type Archive struct {
	zip    *zip.Writer
	at     time.Time
	files  []file
	counts map[string]int64
}

// file is a file of an archive. The last one is still being written.
type file struct {
	path string
	size int64
	sum  [sha256.Size]byte

	to   io.Writer // nil when the file is complete
	hash hash.Hash
}

func newArchive(to io.Writer, at time.Time) *Archive {
	a := &Archive{zip: zip.NewWriter(to), at: at, counts: map[string]int64{}}
	a.zip.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, compression) })
	return a
}

// Create starts the next file. The writer is valid until the next call.
func (a *Archive) Create(path string) (io.Writer, error) {
	a.endFile()
	to, err := a.zip.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Deflate, Modified: a.at})
	if err != nil {
		return nil, fmt.Errorf("starting a file of an archive: %w", err)
	}
	a.files = append(a.files, file{path: path, to: to, hash: sha256.New()})
	return &a.files[len(a.files)-1], nil
}

// Count adds to the number of exported objects of a kind.
func (a *Archive) Count(kind string, n int) { a.counts[kind] += int64(n) }

// endFile completes the description of the file that is being written.
func (a *Archive) endFile() {
	if len(a.files) == 0 {
		return
	}
	last := &a.files[len(a.files)-1]
	last.hash.Sum(last.sum[:0])
	last.to, last.hash = nil, nil
}

// Write writes content of the file.
func (f *file) Write(content []byte) (int, error) {
	n, err := f.to.Write(content)
	f.size += int64(n)
	f.hash.Write(content[:n]) // never fails
	return n, err
}

// finish writes the manifest and the end of the archive.
func (a *Archive) finish(manifest *protocol.ExportManifest) error {
	a.endFile()
	files := a.files
	a.files = nil
	to, err := a.Create("manifest.json")
	if err != nil {
		return err
	}
	manifest.Counts = a.counts
	object := newObject(to)
	object.member("format", manifest.Format)
	object.member("version", manifest.Version)
	object.member("account_id", manifest.AccountID)
	object.member("started_at", manifest.StartedAt)
	object.member("finished_at", manifest.FinishedAt)
	object.member("consistency", manifest.Consistency)
	object.member("counts", manifest.Counts)
	object.begin("files")
	for i := range files {
		object.item(protocol.ExportedFile{Path: files[i].path, Size: files[i].size, SHA256: hex.EncodeToString(files[i].sum[:])})
	}
	object.end()
	if err := object.close(); err != nil {
		return err
	}
	if err := a.zip.Close(); err != nil {
		return fmt.Errorf("ending an archive: %w", err)
	}
	return nil
}

// object writes a JSON object member by member, so that long lists are never in memory. The first error is returned by
// close; the other methods do nothing after it.
type object struct {
	to            io.Writer
	err           error
	members, list int
}

func newObject(to io.Writer) *object {
	o := &object{to: to}
	o.write("{")
	return o
}

func (o *object) write(text string) {
	if o.err == nil {
		_, o.err = io.WriteString(o.to, text)
	}
}

func (o *object) name(name string) {
	if o.members++; o.members > 1 {
		o.write(",")
	}
	o.write("\n")
	o.value(name)
	o.write(":")
}

func (o *object) value(v any) {
	if o.err != nil {
		return
	}
	var text []byte
	if text, o.err = wire.Marshal(v); o.err == nil {
		_, o.err = o.to.Write(text)
	}
}

// member writes a member with its value.
func (o *object) member(name string, v any) {
	o.name(name)
	o.value(v)
}

// begin starts a member that is a list; item and end follow.
func (o *object) begin(name string) {
	o.name(name)
	o.write("[")
	o.list = 0
}

func (o *object) item(v any) {
	if o.list++; o.list > 1 {
		o.write(",")
	}
	o.write("\n")
	o.value(v)
}

func (o *object) end() { o.write("]") }

func (o *object) close() error {
	o.write("}\n")
	return o.err
}
