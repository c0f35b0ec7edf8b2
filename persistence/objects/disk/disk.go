// Package disk stores objects as files in one folder, for a service on one host computer. A file is written under a temporary
// name, synced and renamed to its final name, and its folder is synced, so that a crash leaves the old object or the
// new one.
//
// Layout: objects/<segments as folders>/=<last segment>, where '=' distinguishes an object from a folder of the same
// name; tmp/ contains the files that are being written. All paths go through os.Root, which follows no symbolic link
// out of the folder.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"turnstone/persistence/objects"
	"turnstone/protocol"
)

const (
	objectsFolder = "objects"
	tempFolder    = "tmp"
	filePrefix    = "="

	folderMode = 0o700
	fileMode   = 0o600
	// leftoverAge is the age at which the writer of a file in tmp/ has certainly ended: no upload takes that long.
	leftoverAge = 24 * time.Hour
	// renameTries limits the retries of a rename: a Delete may remove the folder that a Put has just created, a few
	// times in a row at worst.
	renameTries = 10
)

// Store is an objects.Store in a folder.
type Store struct {
	root *os.Root
}

var _ objects.Store = (*Store)(nil)

// Open creates the folder if it is missing, and removes incomplete files of writers that have ended.
func Open(folder string) (*Store, error) {
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return nil, fmt.Errorf("creating the folder of the object store: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the object store: %w", err)
	}
	s := &Store{root: root}
	for _, sub := range []string{objectsFolder, tempFolder} {
		if err := s.makeFolder(sub); err != nil {
			return nil, errors.Join(fmt.Errorf("creating the folders of the object store: %w", err), root.Close())
		}
	}
	if err := s.removeLeftovers(); err != nil {
		return nil, errors.Join(fmt.Errorf("removing incomplete objects: %w", err), root.Close())
	}
	return s, nil
}

// Close closes the descriptor of the folder. No call may be running.
func (s *Store) Close() error { return s.root.Close() }

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) (objects.Digest, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Digest{}, err
	}
	reading := objects.NewBody(body, size)
	if err := s.write(ctx, key, reading); err != nil {
		return objects.Digest{}, fmt.Errorf("putting an object: %w", err)
	}
	return reading.Digest(), nil
}

// write writes body to a temporary file and renames it to the file of key. Every object is stored by it.
func (s *Store) write(ctx context.Context, key string, body io.Reader) (err error) {
	temp := path.Join(tempFolder, uuid.NewString())
	file, err := s.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return unavailable(err)
	}
	defer func() {
		if err != nil {
			_ = s.root.Remove(temp) // if this fails, a later sweep removes the file
		}
	}()
	_, err = io.Copy(diskWriter{file}, contextReader{ctx, body})
	if err == nil {
		err = unavailable(file.Sync())
	}
	if closeErr := file.Close(); err == nil {
		err = unavailable(closeErr)
	}
	if err != nil {
		return err
	}
	return unavailable(s.rename(temp, objectPath(key)))
}

// rename moves a temporary file to its final path and makes that durable.
func (s *Store) rename(temp, to string) error {
	var err error
	for range renameTries {
		if err = s.makeFolder(path.Dir(to)); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return err
		}
		if err = s.root.Rename(temp, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	return s.syncFolder(path.Dir(to))
}

// makeFolder creates dir and its missing parents. Each is durable before anything is created in it.
func (s *Store) makeFolder(dir string) error {
	if _, err := s.root.Stat(dir); err == nil || dir == "." {
		return err
	}
	if err := s.makeFolder(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.syncFolder(path.Dir(dir))
}

func (s *Store) syncFolder(dir string) error {
	folder, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := errors.Join(objects.CheckKey(key), objects.CheckRange(offset, length)); err != nil {
		return nil, err
	}
	file, err := s.open(key)
	if err != nil {
		return nil, fmt.Errorf("getting an object: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(unavailable(err), file.Close())
	}
	if offset > info.Size() {
		return nil, errors.Join(protocol.Errorf(protocol.CodeInvalid, "the object ends before %d", offset), file.Close())
	}
	left := info.Size() - offset
	if length != objects.ToEnd {
		left = min(left, length)
	}
	section := io.NewSectionReader(file, offset, left)
	return &objectReader{reader: contextReader{ctx, section}, left: left, file: file}, nil
}

// Stat implements objects.Store.
func (s *Store) Stat(_ context.Context, key string) (objects.Info, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Info{}, err
	}
	info, err := s.root.Lstat(objectPath(key))
	if err != nil {
		return objects.Info{}, fmt.Errorf("reading the attributes of an object: %w", classify(err))
	}
	return objects.Info{Key: key, Size: info.Size(), ModifiedAt: info.ModTime()}, nil
}

// Copy implements objects.Store. The copy is another name of the same file: a file never changes once it has its final name.
// On a file system without links, the bytes are copied.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := errors.Join(objects.CheckKey(from), objects.CheckKey(to)); err != nil {
		return err
	}
	temp := path.Join(tempFolder, uuid.NewString())
	err := s.root.Link(objectPath(from), temp)
	switch {
	case err == nil:
		err = unavailable(s.rename(temp, objectPath(to)))
		_ = s.root.Remove(temp) // it is still there if to is a name of the same file already, or after an error
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		err = classify(err)
	default:
		err = s.copyBytes(ctx, from, to)
	}
	if err != nil {
		return fmt.Errorf("copying an object: %w", err)
	}
	return nil
}

func (s *Store) copyBytes(ctx context.Context, from, to string) error {
	file, err := s.open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the file is only read
	return s.write(ctx, to, diskReader{file})
}

// Delete implements objects.Store. It also removes the folders that become empty.
func (s *Store) Delete(_ context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	at := objectPath(key)
	if err := s.root.Remove(at); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		return fmt.Errorf("deleting an object: %w", unavailable(err))
	}
	dir := path.Dir(at)
	for ; dir != objectsFolder && s.root.Remove(dir) == nil; dir = path.Dir(dir) {
	}
	if err := s.syncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting an object: %w", unavailable(err))
	}
	return nil
}

// List implements objects.Store. It walks the whole folder of the prefix, so it is suited to purges and audits only.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	if err := objects.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	start := objectsFolder
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		start = path.Join(objectsFolder, prefix[:slash])
	}
	var found []objects.Info
	err := fs.WalkDir(s.root.FS(), start, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return ctx.Err() // removed during the walk, or never existed
		}
		if err != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		key, isObject := keyOfPath(at)
		if !isObject || !strings.HasPrefix(key, prefix) || key <= after {
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			found = append(found, objects.Info{Key: key, Size: info.Size(), ModifiedAt: info.ModTime()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing objects: %w", unavailable(err))
	}
	slices.SortFunc(found, func(a, b objects.Info) int { return strings.Compare(a.Key, b.Key) })
	return found[:min(len(found), max(limit, 0), objects.MaxList)], nil
}

// Ready implements objects.Store. It creates, syncs and removes a file.
func (s *Store) Ready(context.Context) error {
	probe := path.Join(tempFolder, "ready-"+uuid.NewString())
	file, err := s.root.OpenFile(probe, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return unavailable(err)
	}
	_, err = file.WriteString("ready")
	return unavailable(errors.Join(err, file.Sync(), file.Close(), s.root.Remove(probe)))
}

func (s *Store) open(key string) (*os.File, error) {
	file, err := s.root.Open(objectPath(key))
	if err != nil {
		return nil, classify(err)
	}
	return file, nil
}

// removeLeftovers removes the files in tmp/ that are older than leftoverAge.
func (s *Store) removeLeftovers() error {
	entries, err := fs.ReadDir(s.root.FS(), tempFolder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < leftoverAge {
			continue
		}
		if err := s.root.Remove(path.Join(tempFolder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// objectPath returns the path of the file of an object.
func objectPath(key string) string {
	return path.Join(objectsFolder, path.Dir(key), filePrefix+path.Base(key))
}

// keyOfPath returns the key of the object at a path; false if the file is not an object.
func keyOfPath(at string) (string, bool) {
	name, isObject := strings.CutPrefix(path.Base(at), filePrefix)
	return strings.TrimPrefix(path.Join(path.Dir(at), name), objectsFolder+"/"), isObject
}

// classify converts an error of the file system: a missing file is protocol.CodeNotFound.
func classify(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return protocol.Errorf(protocol.CodeNotFound, "there is no such object")
	}
	return unavailable(err)
}

// unavailable converts an error of the file system to protocol.CodeUnavailable. Errors of a context pass unchanged.
func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return protocol.Errorf(protocol.CodeUnavailable, "object store: %w", err)
}

// contextReader stops reading when the context ends.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// diskWriter and diskReader mark failures of the disk, to distinguish them from failures of the body.
type diskWriter struct{ to io.Writer }

func (w diskWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	return n, unavailable(err)
}

type diskReader struct{ from io.Reader }

func (r diskReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, unavailable(err)
}

// objectReader returns an error if the file ends before the promised length.
type objectReader struct {
	reader io.Reader
	left   int64
	file   *os.File
}

func (r *objectReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p)
	r.left -= int64(n)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, unavailable(err)
	case r.left > 0:
		return n, unavailable(io.ErrUnexpectedEOF)
	default:
		return n, io.EOF
	}
}

func (r *objectReader) Close() error { return r.file.Close() }
