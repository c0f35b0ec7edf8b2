// Package objects stores bytes that are too large for rows: uploaded files, thumbnails, contents of artifacts. It
// defines the interface Store. The packages disk and s3 implement it, and objectstest runs one test suite against both.
// Names, types and owners are in the database: a store knows only keys and bytes, and a key reveals nothing.
//
// Package cmd opens a store. Of this module, package objects imports only protocol, for its errors.
package objects

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"turnstone/protocol"
)

const (
	// maxKey is below the limits of S3 (1,024 bytes) and of a path on disk (4,096 bytes).
	maxKey = 512
	// maxSegment, together with the mark of the disk store, is below the limit of a file name on disk.
	maxSegment = 200
	// ToEnd is the length of a Get that reads to the end of the object.
	ToEnd = int64(-1)
	// MaxList is the maximum number of objects that one List returns.
	MaxList = 1000
)

// Store stores objects under keys. It is safe for concurrent use.
//
// Errors: a missing object is protocol.CodeNotFound, an invalid key or range is protocol.CodeInvalid, and every failure
// of the store itself is protocol.CodeUnavailable. An error of a body or of a context is wrapped unchanged.
type Store interface {
	// Put stores exactly size bytes of body under key and replaces an earlier object. It returns when the bytes are
	// durable. After an error, the key still has its earlier object. A body of another size is CodeInvalid and stores
	// nothing.
	Put(ctx context.Context, key string, body io.Reader, size int64) (Digest, error)
	// Get reads length bytes from offset, or fewer if the object ends earlier; ToEnd reads all bytes that follow. If
	// bytes are missing, the reader returns an error and never an early io.EOF. The caller closes it.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Stat returns the size and the time of one object.
	Stat(ctx context.Context, key string) (Info, error)
	// Copy stores the bytes of from under to, inside the store. As with Put, to is complete or has its earlier object.
	Copy(ctx context.Context, from, to string) error
	// Delete removes the object. A missing object is not an error.
	Delete(ctx context.Context, key string) error
	// List returns up to limit (at most MaxList) objects whose keys start with prefix and come after the key after, in
	// the order of their bytes.
	List(ctx context.Context, prefix, after string, limit int) ([]Info, error)
	// Ready checks cheaply whether the store works.
	Ready(ctx context.Context) error
}

// DeleteAll deletes every object under a prefix, and returns how many there were.
func DeleteAll(ctx context.Context, store Store, prefix string) (deleted int, err error) {
	for {
		found, err := store.List(ctx, prefix, "", MaxList)
		if err != nil || len(found) == 0 {
			return deleted, err
		}
		for _, object := range found {
			if err := store.Delete(ctx, object.Key); err != nil {
				return deleted, err
			}
			deleted++
		}
	}
}

// Info describes an object.
type Info struct {
	Key        string
	Size       int64
	ModifiedAt time.Time
}

// Digest is the SHA-256 of the bytes that a Put stored.
type Digest = [sha256.Size]byte

// CheckKey returns an error unless key is valid: segments of letters, digits, '.', '_' and '-' that start with a letter
// or digit, joined by '/'. So no key leads out of a folder, and none has a special meaning to a shell, a URL or a file
// system.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return protocol.Errorf(protocol.CodeInvalid, "an object key must have 1 to %d bytes", maxKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if !goodSegment(segment) {
			return protocol.Errorf(protocol.CodeInvalid, "invalid object key")
		}
	}
	return nil
}

// CheckPrefix returns an error unless a key can start with prefix.
func CheckPrefix(prefix string) error {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		prefix += "x"
	}
	return CheckKey(prefix)
}

// CheckRange returns an error unless the range is valid for a Get.
func CheckRange(offset, length int64) error {
	if offset < 0 || length < ToEnd {
		return protocol.Errorf(protocol.CodeInvalid, "invalid range of an object")
	}
	return nil
}

func goodSegment(segment string) bool {
	if segment == "" || len(segment) > maxSegment {
		return false
	}
	for i := range len(segment) {
		c := segment[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}

// Body reads exactly size bytes of the body of a Put and hashes them; a shorter or longer body is CodeInvalid. The
// implementations read through it, so that none stores another size than the declared one.
type Body struct {
	from io.Reader
	left int64
	hash hash.Hash
}

// NewBody wraps the body of a Put.
func NewBody(from io.Reader, size int64) *Body {
	return &Body{from: from, left: size, hash: sha256.New()}
}

func (b *Body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.atEnd()
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.hash.Write(p[:n]) // never fails
	b.left -= int64(n)
	if errors.Is(err, io.EOF) {
		if b.left > 0 {
			return n, protocol.Errorf(protocol.CodeInvalid, "the object is %d bytes shorter than declared", b.left)
		}
		return n, io.EOF
	}
	if err != nil {
		return n, fmt.Errorf("reading the body of an object: %w", err)
	}
	return n, nil
}

// atEnd returns io.EOF if the source ends after the declared size.
func (b *Body) atEnd() error {
	var more [1]byte
	n, err := io.ReadFull(b.from, more[:])
	switch {
	case n > 0:
		return protocol.Errorf(protocol.CodeInvalid, "the object is longer than declared")
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return fmt.Errorf("reading the body of an object: %w", err)
	}
}

// Digest returns the hash of the bytes that were read.
func (b *Body) Digest() Digest {
	return Digest(b.hash.Sum(nil))
}
