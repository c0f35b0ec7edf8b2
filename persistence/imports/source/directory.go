package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// maxFiles limits the files of an archive: package zip reserves memory for as many as the end of the archive names.
const maxFiles = 500_000

var errEnd = errors.New("its end is missing")

// checkDirectory checks the number of files that every possible end of an archive names, before package zip reads it.
func checkDirectory(from io.ReaderAt, size int64) error {
	const (
		endLength = 22
		comment   = 1<<16 - 1
		locator   = 20 // before the end, for archives with more files than 16 bits can count
		count64At = 32
	)
	tail := make([]byte, min(size, endLength+comment+locator))
	if _, err := from.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	found := false
	for at := len(tail) - endLength; at >= 0; at-- {
		if !bytes.HasPrefix(tail[at:], []byte("PK\x05\x06")) {
			continue
		}
		found = true
		if at < locator || !bytes.HasPrefix(tail[at-locator:], []byte("PK\x06\x07")) {
			continue // at most 65,535 files
		}
		var end [56]byte
		offset := binary.LittleEndian.Uint64(tail[at-locator+8:])
		if offset > uint64(size) { // a size is not negative
			return errEnd
		}
		if _, err := from.ReadAt(end[:], int64(offset)); err != nil { // below size
			return errEnd
		}
		if binary.LittleEndian.Uint64(end[count64At:]) > maxFiles {
			return errors.New("it has too many files")
		}
	}
	if !found {
		return errEnd
	}
	return nil
}
