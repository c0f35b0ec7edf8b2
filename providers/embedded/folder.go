package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// maxSocketPath is what fits in sockaddr_un with its terminating zero.
	maxSocketPath = 107
	// rootFallback holds the servers' folders when the account they run under cannot reach the data folder, as with a
	// clone below /root.
	rootFallback = "/var/lib/turnstone"
	// locationFile in the data folder says where the server's folder is when it is elsewhere.
	locationFile = "location"
	// socketsFile in the data folder says where the sockets are when their path would be too long.
	socketsFile = "sockets"
)

// account is whom a server runs as. Drop is false when that is ourselves.
type account struct {
	drop     bool
	uid, gid int
}

// serverAccount picks the first existing account of names, when we are root, and ourselves otherwise.
func serverAccount(names ...string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{drop: true, uid: uid, gid: gid}, nil
		}
	}
	return account{}, fmt.Errorf("running as root, and none of the accounts %s exists to run the server under",
		strings.Join(names, ", "))
}

// attributes are how a server's processes are started: a session of their own, so that a Ctrl-C at the terminal reaches
// only us and we stop things in order; and the kernel's promise that they end when we do.
func (a account) attributes(onParentDeath syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: onParentDeath}
	if a.drop {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}

// makeOwned makes dir, owned by the account and closed to others.
func (a account) makeOwned(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if owner := ownerOf(info); owner != a.uid && (!a.drop || owner != 0) {
		return fmt.Errorf("%s belongs to somebody else (uid %d)", dir, owner)
	}
	if a.drop {
		if err := os.Lchown(dir, a.uid, a.gid); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// reaches reports whether the account may pass through every folder down to dir.
func (a account) reaches(dir string) bool {
	if !a.drop {
		return true
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return false
		}
		stat, _ := info.Sys().(*syscall.Stat_t)
		mode := info.Mode().Perm()
		switch {
		case stat != nil && int(stat.Uid) == a.uid:
			mode >>= 6
		case stat != nil && int(stat.Gid) == a.gid:
			mode >>= 3
		}
		if mode&1 == 0 {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// serverFolder answers where the server's own files go: dir itself, or, when the account cannot reach that, a folder
// that it can, named in dir so that an operator finds it.
func (a account) serverFolder(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("making the data folder: %w", err)
	}
	if a.drop {
		if err := os.Chmod(dir, 0o711); err != nil {
			return "", fmt.Errorf("opening the data folder to the server's account: %w", err)
		}
	}
	if recorded, err := os.ReadFile(filepath.Join(dir, locationFile)); err == nil {
		return strings.TrimSpace(string(recorded)), nil
	}
	if a.reaches(dir) {
		return dir, nil
	}
	elsewhere := filepath.Join(rootFallback, folderHash(dir))
	if err := os.MkdirAll(elsewhere, 0o711); err != nil {
		return "", fmt.Errorf("making %s, since the server's account cannot reach %s: %w", elsewhere, dir, err)
	}
	if !a.reaches(elsewhere) {
		return "", fmt.Errorf("the server's account (uid %d) can reach neither %s nor %s", a.uid, dir, elsewhere)
	}
	return elsewhere, os.WriteFile(filepath.Join(dir, locationFile), []byte(elsewhere+"\n"), privateMode)
}

// socketFolder answers where the socket named name goes: below the server's folder, or in a short folder of the system's
// temporary one when its path would not fit. dir is where that is recorded.
func (a account) socketFolder(dir, folder, name string) (string, error) {
	sockets := filepath.Join(folder, "run")
	if len(filepath.Join(sockets, name)) > maxSocketPath {
		sockets = filepath.Join(os.TempDir(), "turnstone-"+folderHash(folder))
		if len(filepath.Join(sockets, name)) > maxSocketPath {
			return "", fmt.Errorf("%s is too long a path for a unix socket", sockets)
		}
		if err := os.WriteFile(filepath.Join(dir, socketsFile), []byte(sockets+"\n"), privateMode); err != nil {
			return "", fmt.Errorf("recording where the sockets are: %w", err)
		}
	}
	if err := a.makeOwned(sockets); err != nil {
		return "", fmt.Errorf("making the folder of the socket: %w", err)
	}
	return sockets, nil
}

func ownerOf(info os.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}

func folderHash(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:6])
}

// exists reports whether path is there; an error that is no absence is an answer of its own.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
