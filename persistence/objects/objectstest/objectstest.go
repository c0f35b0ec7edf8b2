// Package objectstest is the test suite for every implementation of objects.Store. Only tests import it.
package objectstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"turnstone/persistence/objects"
	"turnstone/protocol"
)

// large is a size that an s3 upload splits into several parts, the last one of an odd size.
const large = 17<<20 + 3

// Run tests that an empty store fulfils the contract of objects.Store.
func Run(t *testing.T, open func(t *testing.T) objects.Store) {
	for name, test := range map[string]func(*testing.T, objects.Store){
		"a stored object is read whole and in ranges":   roundTrip,
		"a large stream is stored with its hash":        largeStream,
		"a second put replaces the first":               replaces,
		"a body of another size stores nothing":         wrongSize,
		"a body that fails stores nothing":              failingBody,
		"a cancelled put stores nothing":                cancelledPut,
		"a missing object is not found":                 missing,
		"invalid and unsafe keys are refused":           badKeys,
		"a copy is complete and independent":            copies,
		"an object is deleted and stored again":         deletes,
		"lists come in order, by prefix, in pages":      lists,
		"an object and a folder may have the same name": nested,
		"concurrent writers leave one whole object":     concurrent,
		"it is ready": func(t *testing.T, s objects.Store) { ok(t, s.Ready(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func roundTrip(t *testing.T, s objects.Store) {
	body := []byte("0123456789")
	digest := put(t, s, "f/acct/a", body)
	if digest != sha256.Sum256(body) {
		t.Errorf("the digest is %x", digest)
	}
	info, err := s.Stat(t.Context(), "f/acct/a")
	ok(t, err)
	if info.Key != "f/acct/a" || info.Size != 10 || info.ModifiedAt.IsZero() {
		t.Errorf("Stat returns %+v", info)
	}
	for _, c := range []struct {
		offset, length int64
		want           string
	}{
		{0, objects.ToEnd, "0123456789"},
		{0, 10, "0123456789"},
		{3, 4, "3456"},
		{3, objects.ToEnd, "3456789"},
		{8, 100, "89"},
		{10, objects.ToEnd, ""},
		{10, 5, ""},
		{4, 0, ""},
	} {
		if got := get(t, s, "f/acct/a", c.offset, c.length); string(got) != c.want {
			t.Errorf("offset %d, length %d: %q, want %q", c.offset, c.length, got, c.want)
		}
	}
	for _, c := range [][2]int64{{11, objects.ToEnd}, {11, 2}, {11, 0}, {-1, 2}, {0, -2}} {
		_, err := s.Get(t.Context(), "f/acct/a", c[0], c[1])
		wantCode(t, err, protocol.CodeInvalid)
	}
	put(t, s, "f/acct/empty", nil)
	if got := get(t, s, "f/acct/empty", 0, objects.ToEnd); len(got) != 0 {
		t.Errorf("the empty object reads %q", got)
	}
}

func largeStream(t *testing.T, s objects.Store) {
	body := make([]byte, large)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(body) // never fails
	digest, err := s.Put(t.Context(), "f/large", iotest.HalfReader(bytes.NewReader(body)), large)
	ok(t, err)
	if digest != sha256.Sum256(body) {
		t.Error("the digest is not the SHA-256 of the body")
	}
	if !bytes.Equal(get(t, s, "f/large", 0, objects.ToEnd), body) {
		t.Error("the object has other bytes than the body")
	}
	if !bytes.Equal(get(t, s, "f/large", 8<<20-1, 3), body[8<<20-1:8<<20+2]) {
		t.Error("a range over two parts has other bytes")
	}
}

func replaces(t *testing.T, s objects.Store) {
	put(t, s, "q/one", []byte("first and longer"))
	put(t, s, "q/one", []byte("second"))
	if got := get(t, s, "q/one", 0, objects.ToEnd); string(got) != "second" {
		t.Errorf("the object reads %q", got)
	}
}

func wrongSize(t *testing.T, s objects.Store) {
	put(t, s, "q/kept", []byte("kept"))
	for _, size := range []int64{0, 3, 5, 20 << 20} {
		for _, key := range []string{"q/kept", "q/new"} {
			_, err := s.Put(t.Context(), key, strings.NewReader("four"), size)
			wantCode(t, err, protocol.CodeInvalid)
		}
	}
	body := make([]byte, large)
	for _, size := range []int64{large - 1, large + 1} {
		_, err := s.Put(t.Context(), "q/new", bytes.NewReader(body), size)
		wantCode(t, err, protocol.CodeInvalid)
	}
	_, err := s.Stat(t.Context(), "q/new")
	wantCode(t, err, protocol.CodeNotFound)
	if got := get(t, s, "q/kept", 0, objects.ToEnd); string(got) != "kept" {
		t.Errorf("the earlier object changed to %q", got)
	}
}

func failingBody(t *testing.T, s objects.Store) {
	broken := errors.New("the client went away")
	for _, sent := range []int{1, large} {
		body := io.MultiReader(bytes.NewReader(make([]byte, sent)), iotest.ErrReader(broken))
		_, err := s.Put(t.Context(), "q/cut", body, int64(sent)+10)
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes the error is %v", sent, err)
		}
	}
	_, err := s.Stat(t.Context(), "q/cut")
	wantCode(t, err, protocol.CodeNotFound)
}

func cancelledPut(t *testing.T, s objects.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	body := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, nil
	}), bytes.NewReader(make([]byte, large)))
	if _, err := s.Put(ctx, "q/cancelled", body, 1<<20+large); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	_, err := s.Stat(t.Context(), "q/cancelled")
	wantCode(t, err, protocol.CodeNotFound)
}

func missing(t *testing.T, s objects.Store) {
	put(t, s, "q/there", []byte("x"))
	for _, key := range []string{"q/gone", "nowhere/at/all", "q/there/below"} {
		_, err := s.Get(t.Context(), key, 0, objects.ToEnd)
		wantCode(t, err, protocol.CodeNotFound)
		_, err = s.Get(t.Context(), key, 5, 0)
		wantCode(t, err, protocol.CodeNotFound)
		_, err = s.Stat(t.Context(), key)
		wantCode(t, err, protocol.CodeNotFound)
		wantCode(t, s.Copy(t.Context(), key, "q/copy"), protocol.CodeNotFound)
		wantCode(t, s.Copy(t.Context(), key, key), protocol.CodeNotFound)
	}
}

func badKeys(t *testing.T, s objects.Store) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/.hidden", "a\\b", "a b", "a\x00b", "a\nb", "ä",
		"a?b", "a%2fb", "=a", strings.Repeat("a", 201), strings.Repeat("a/", 300) + "a",
	} {
		_, err := s.Put(t.Context(), key, strings.NewReader("x"), 1)
		wantCode(t, err, protocol.CodeInvalid)
		_, err = s.Get(t.Context(), key, 0, objects.ToEnd)
		wantCode(t, err, protocol.CodeInvalid)
		_, err = s.Stat(t.Context(), key)
		wantCode(t, err, protocol.CodeInvalid)
		wantCode(t, s.Delete(t.Context(), key), protocol.CodeInvalid)
		wantCode(t, s.Copy(t.Context(), key, "good"), protocol.CodeInvalid)
		wantCode(t, s.Copy(t.Context(), "good", key), protocol.CodeInvalid)
	}
	_, err := s.List(t.Context(), "../", "", 10)
	wantCode(t, err, protocol.CodeInvalid)
}

func copies(t *testing.T, s objects.Store) {
	put(t, s, "q/from", []byte("bytes"))
	put(t, s, "f/to", []byte("what it was before"))
	ok(t, s.Copy(t.Context(), "q/from", "f/to"))
	ok(t, s.Copy(t.Context(), "q/from", "q/from"))
	put(t, s, "q/from", []byte("changed"))
	ok(t, s.Delete(t.Context(), "q/from"))
	if got := get(t, s, "f/to", 0, objects.ToEnd); string(got) != "bytes" {
		t.Errorf("the copy is %q", got)
	}
}

func deletes(t *testing.T, s objects.Store) {
	put(t, s, "f/a/b", []byte("x"))
	put(t, s, "f/a/c", []byte("y"))
	ok(t, s.Delete(t.Context(), "f/a/b"))
	ok(t, s.Delete(t.Context(), "f/a/b"))
	ok(t, s.Delete(t.Context(), "never/there"))
	_, err := s.Stat(t.Context(), "f/a/b")
	wantCode(t, err, protocol.CodeNotFound)
	ok(t, s.Delete(t.Context(), "f/a/c"))
	put(t, s, "f/a/b", []byte("again"))
	if got := get(t, s, "f/a/b", 0, objects.ToEnd); string(got) != "again" {
		t.Errorf("stored again, the object is %q", got)
	}
}

func lists(t *testing.T, s objects.Store) {
	keys := []string{"f/a-x/1", "f/a/1", "f/a/2", "f/a/b/3", "f/ab", "g/1"}
	for _, key := range keys {
		put(t, s, key, []byte(key))
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"", "", 100, "f/a-x/1 f/a/1 f/a/2 f/a/b/3 f/ab g/1"},
		{"f/", "", 100, "f/a-x/1 f/a/1 f/a/2 f/a/b/3 f/ab"},
		{"f/a/", "", 100, "f/a/1 f/a/2 f/a/b/3"},
		{"f/a", "", 2, "f/a-x/1 f/a/1"},
		{"f/a", "f/a/1", 2, "f/a/2 f/a/b/3"},
		{"f/a", "f/a/b/3", 2, "f/ab"},
		{"f/zzz", "", 10, ""},
		{"nowhere/", "", 10, ""},
		{"f/", "", 0, ""},
	} {
		found, err := s.List(t.Context(), c.prefix, c.after, c.limit)
		ok(t, err)
		var got []string
		for _, info := range found {
			got = append(got, info.Key)
			if info.Size != int64(len(info.Key)) {
				t.Errorf("%s has %d bytes", info.Key, info.Size)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("prefix %q after %q, limit %d: %v, want %s", c.prefix, c.after, c.limit, got, c.want)
		}
	}
}

func nested(t *testing.T, s objects.Store) {
	put(t, s, "f/a/b", []byte("below"))
	put(t, s, "f/a.b", []byte("dotted"))
	ok(t, s.Delete(t.Context(), "f/a.b"))
	if got := get(t, s, "f/a/b", 0, objects.ToEnd); string(got) != "below" {
		t.Errorf("the object reads %q", got)
	}
}

func concurrent(t *testing.T, s objects.Store) {
	const writers = 8
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			body := bytes.Repeat([]byte{byte('a' + n)}, 100_000)
			if _, err := s.Put(t.Context(), "f/deep/er/one", bytes.NewReader(body), int64(len(body))); err != nil {
				t.Error(err)
			}
			if err := s.Delete(t.Context(), fmt.Sprintf("f/deep/er/%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := get(t, s, "f/deep/er/one", 0, objects.ToEnd)
	if len(got) != 100_000 || strings.Trim(string(got), string(got[:1])) != "" {
		t.Errorf("the object has %d bytes, want 100000 bytes of one writer", len(got))
	}
}

type readerFunc func([]byte) (int, error)

// Read calls f. If f returns neither bytes nor an error, Read returns io.EOF.
func (f readerFunc) Read(p []byte) (int, error) {
	n, err := f(p)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

func put(t *testing.T, s objects.Store, key string, body []byte) objects.Digest {
	t.Helper()
	digest, err := s.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)))
	ok(t, err)
	return digest
}

func get(t *testing.T, s objects.Store, key string, offset, length int64) []byte {
	t.Helper()
	reader, err := s.Get(t.Context(), key, offset, length)
	ok(t, err)
	body, err := io.ReadAll(reader)
	ok(t, err)
	ok(t, reader.Close())
	return body
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code protocol.Code) {
	t.Helper()
	var ours *protocol.Error
	if !errors.As(err, &ours) || ours.Code != code {
		t.Errorf("the error is %v, want %s", err, code)
	}
}
