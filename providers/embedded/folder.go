package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// maxSocketPath is the longest path that fits in sockaddr_un with its terminating zero.
	maxSocketPath = 107
	// rootFallback contains the servers' folders if their account cannot access the data folder, for example in a clone
	// below /root.
	rootFallback = "/var/lib/turnstone"
	// locationFile is a file in the data folder. It contains the path of the server's folder if that is elsewhere.
	locationFile = "location"
	// socketsFile is a file in the data folder. It contains the path of the sockets if they are elsewhere, because
	// their path would be too long.
	socketsFile = "sockets"
)

// account is the operating system account of a server. drop is false if that is our own account.
type account struct {
	drop     bool
	uid, gid int
}

// serverAccount returns the first existing account of names if we are root, otherwise our own account.
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
	return account{}, fmt.Errorf("running as root, and none of the accounts that could run the server exists: %s",
		strings.Join(names, ", "))
}

// attributes returns the attributes with which a server is started. It gets its own session, so that a Ctrl-C at the
// terminal reaches only us, and we stop the servers in order. The kernel sends it onParentDeath when our process ends.
func (a account) attributes(onParentDeath syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: onParentDeath}
	if a.drop {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}

// makeOwned creates dir, owned by the account and closed to others.
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
		return fmt.Errorf("%s belongs to another account (uid %d)", dir, owner)
	}
	if a.drop {
		if err := os.Lchown(dir, a.uid, a.gid); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// canAccess reports whether the account may pass through every folder down to dir.
func (a account) canAccess(dir string) bool {
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

// serverFolder returns the folder for the server's own files: dir itself or, if the account cannot access that, another
// folder, whose path is recorded in dir so that an operator finds it.
func (a account) serverFolder(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("creating the data folder: %w", err)
	}
	if a.drop {
		if err := os.Chmod(dir, 0o711); err != nil {
			return "", fmt.Errorf("permitting the server's account to enter the data folder: %w", err)
		}
	}
	if recorded, err := os.ReadFile(filepath.Join(dir, locationFile)); err == nil {
		return strings.TrimSpace(string(recorded)), nil
	}
	if a.canAccess(dir) {
		return dir, nil
	}
	elsewhere := filepath.Join(rootFallback, folderHash(dir))
	if err := os.MkdirAll(elsewhere, 0o711); err != nil {
		return "", fmt.Errorf("creating %s, because the server's account cannot access %s: %w", elsewhere, dir, err)
	}
	if !a.canAccess(elsewhere) {
		return "", fmt.Errorf("the server's account (uid %d) can access neither %s nor %s", a.uid, dir, elsewhere)
	}
	return elsewhere, os.WriteFile(filepath.Join(dir, locationFile), []byte(elsewhere+"\n"), privateMode)
}

// socketFolder returns the folder for the socket called name: below the server's folder, or a short path in the
// system's temporary folder if the first path would be too long. The short path is recorded in dir.
func (a account) socketFolder(dir, folder, name string) (string, error) {
	sockets := filepath.Join(folder, "run")
	if len(filepath.Join(sockets, name)) > maxSocketPath {
		sockets = filepath.Join(os.TempDir(), "turnstone-"+folderHash(folder))
		if len(filepath.Join(sockets, name)) > maxSocketPath {
			return "", fmt.Errorf("the path %s is too long for a unix socket", sockets)
		}
		if err := os.WriteFile(filepath.Join(dir, socketsFile), []byte(sockets+"\n"), privateMode); err != nil {
			return "", fmt.Errorf("recording the folder of the sockets: %w", err)
		}
	}
	if err := a.makeOwned(sockets); err != nil {
		return "", fmt.Errorf("creating the folder of the socket: %w", err)
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
