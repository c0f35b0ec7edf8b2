// Package objects is where bytes live that are too large for rows: uploaded files, thumbnails, artifacts' contents. It
// defines the store; disk and s3 below implement it and objectstest holds both to one suite. Names, types and owners
// are in the database: a store knows keys and bytes, and a key says nothing to anybody.
//
// persistence's and cmd's code call it; it calls nothing of ours but the vocabulary of errors.
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
	// maxKey is below what S3 (1,024) and a path on disk (4,096) allow.
	maxKey = 512
	// maxSegment is what a file name on disk allows, less our mark.
	maxSegment = 200
	// ToEnd as the length of a Get reads to the end of the object.
	ToEnd = int64(-1)
	// MaxList is the most that one List answers.
	MaxList = 1000
)

// Store keeps objects under keys. Safe for concurrent use.
//
// Errors carry their meaning: a missing object is protocol.CodeNotFound, a key or range that cannot be
// protocol.CodeInvalid, everything about the store itself protocol.CodeUnavailable. What a body or a context reports is
// wrapped as it is.
type Store interface {
	// Put stores exactly size bytes of body under key, replacing what was there. It answers when they are durable; on any
	// error the key still has what it had before. A body of another size is CodeInvalid and stores nothing.
	Put(ctx context.Context, key string, body io.Reader, size int64) (Digest, error)
	// Get reads length bytes from offset, fewer when the object ends before, ToEnd for all that follow. The reader fails,
	// and never ends early with io.EOF, when bytes are missing. The caller closes it.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Stat tells about one object.
	Stat(ctx context.Context, key string) (Info, error)
	// Copy makes to an object with the bytes of from, inside the store. As with Put, to is whole or as before.
	Copy(ctx context.Context, from, to string) error
	// Delete removes the object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
	// List answers up to limit (at most MaxList) objects whose keys begin with prefix and come after the key after, in
	// the order of their bytes.
	List(ctx context.Context, prefix, after string, limit int) ([]Info, error)
	// Ready asks the store cheaply whether it would work.
	Ready(ctx context.Context) error
}

// Info is what a store knows of an object.
type Info struct {
	Key        string
	Size       int64
	ModifiedAt time.Time
}

// Digest is the SHA-256 of the bytes that a Put stored.
type Digest [sha256.Size]byte

// CheckKey says whether key is one: segments of letters, digits, '.', '_' and '-' that begin with a letter or digit,
// joined by '/'. So no key climbs out of a folder, and none means something to a shell, a URL or a file system.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return protocol.Errorf(protocol.CodeInvalid, "an object's key has 1 to %d bytes", maxKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if !goodSegment(segment) {
			return protocol.Errorf(protocol.CodeInvalid, "not an object's key")
		}
	}
	return nil
}

// CheckPrefix says whether prefix can begin a key.
func CheckPrefix(prefix string) error {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		prefix += "x"
	}
	return CheckKey(prefix)
}

// CheckRange says whether a Get may ask for it.
func CheckRange(offset, length int64) error {
	if offset < 0 || length < ToEnd {
		return protocol.Errorf(protocol.CodeInvalid, "not a range of an object")
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

// Body reads exactly size bytes of a Put's body, hashing them; a body that ends before or goes on after is CodeInvalid.
// Implementations read through it, so that none can store what was not declared.
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
		return n, fmt.Errorf("reading what is to be stored: %w", err)
	}
	return n, nil
}

// atEnd looks whether the source ends where it said it would.
func (b *Body) atEnd() error {
	var more [1]byte
	n, err := io.ReadFull(b.from, more[:])
	switch {
	case n > 0:
		return protocol.Errorf(protocol.CodeInvalid, "the object is longer than declared")
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return fmt.Errorf("reading what is to be stored: %w", err)
	}
}

// Digest is the hash of what was read.
func (b *Body) Digest() Digest {
	return Digest(b.hash.Sum(nil))
}
