package archive

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

// New returns an archive that is written to a writer. Its files have the time at.
func New(to io.Writer, at time.Time) *Archive {
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

// Write writes one value as a file.
func (a *Archive) Write(path string, v any) error {
	to, err := a.Create(path)
	if err != nil {
		return err
	}
	text, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}

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

// Finish writes the manifest and the end of the archive.
func (a *Archive) Finish(manifest *protocol.ExportManifest) error {
	a.endFile()
	files := a.files
	a.files = nil
	to, err := a.Create("manifest.json")
	if err != nil {
		return err
	}
	manifest.Counts = a.counts
	object := NewObject(to)
	object.Member("format", manifest.Format)
	object.Member("version", manifest.Version)
	object.Member("account_id", manifest.AccountID)
	object.Member("started_at", manifest.StartedAt)
	object.Member("finished_at", manifest.FinishedAt)
	object.Member("consistency", manifest.Consistency)
	object.Member("counts", manifest.Counts)
	object.Begin("files")
	for i := range files {
		object.Item(protocol.ExportedFile{Path: files[i].path, Size: files[i].size, SHA256: hex.EncodeToString(files[i].sum[:])})
	}
	object.End()
	if err := object.Close(); err != nil {
		return err
	}
	if err := a.zip.Close(); err != nil {
		return fmt.Errorf("ending an archive: %w", err)
	}
	return nil
}
