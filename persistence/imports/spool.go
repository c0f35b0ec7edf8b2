package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"turnstone/persistence/objects"
	"turnstone/protocol"
)

// chunkSize is the size of each object of an upload but the last. It is held in memory while it is written or read.
const chunkSize = 8 << 20

// Prefix returns the prefix of the keys of the uploads of an account.
func Prefix(account protocol.AccountID) string { return "i/" + account.String() + "/" }

func chunkKey(account protocol.AccountID, id protocol.ImportID, n int) string {
	return fmt.Sprintf("%s%s/%05d", Prefix(account), id, n)
}

// spool reads an upload. It keeps the last two chunks: a file of an archive is read in order.
type spool struct {
	ctx     context.Context
	store   objects.Store
	account protocol.AccountID
	id      protocol.ImportID
	size    int64

	mu     sync.Mutex
	chunks [2]chunk // guarded by mu; the last used first
	read   int64    // guarded by mu; the furthest byte
}

type chunk struct {
	n     int // from 1; 0: none
	bytes []byte
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(p []byte, at int64) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(p) && at < s.size {
		content, err := s.chunk(int(at / chunkSize))
		if err != nil {
			return n, err
		}
		offset := at % chunkSize
		if offset >= int64(len(content)) {
			return n, protocol.Errorf(protocol.CodeUnavailable, "an object of the upload is too short")
		}
		copied := copy(p[n:], content[offset:])
		n, at = n+copied, at+int64(copied)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// chunk returns a chunk, by its number from 0.
func (s *spool) chunk(n int) ([]byte, error) {
	for i, c := range s.chunks {
		if c.n == n+1 {
			s.chunks[0], s.chunks[i] = s.chunks[i], s.chunks[0]
			return c.bytes, nil
		}
	}
	object, err := s.store.Get(s.ctx, chunkKey(s.account, s.id, n), 0, objects.ToEnd)
	if err != nil {
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	buffer := bytes.NewBuffer(s.chunks[1].bytes[:0])
	_, err = buffer.ReadFrom(io.LimitReader(object, chunkSize))
	if err = errors.Join(err, object.Close()); err != nil {
		s.chunks[1] = chunk{}
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	s.chunks[1] = chunk{n + 1, buffer.Bytes()}
	s.chunks[0], s.chunks[1] = s.chunks[1], s.chunks[0]
	s.read = max(s.read, int64(n+1)*chunkSize)
	return s.chunks[0].bytes, nil
}

// progress returns how much of the upload was read.
func (s *spool) progress() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.read, s.size)
}
