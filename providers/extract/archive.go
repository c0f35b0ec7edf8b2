package extract

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"turnstone/protocol"
)

// archive is a ZIP archive whose directory is within the limits.
type archive struct {
	entries map[string]*zip.File
	left    int64 // bytes that may still be unpacked
}

const encryptedEntry = 1 // flag of an entry

// openArchive checks the directory of an archive. The sizes in it may be wrong: entries are counted while they are unpacked.
func openArchive(c content) (*archive, error) {
	if c.isOLE() {
		return nil, errEncrypted
	}
	z, err := zip.NewReader(c.ReaderAt, c.size)
	if err != nil {
		return nil, fail(protocol.TextDamaged, err)
	}
	if len(z.File) > maxEntries {
		return nil, errComplex
	}
	a := &archive{entries: map[string]*zip.File{}, left: maxUnpacked}
	var total uint64
	for _, f := range z.File {
		size, packed := f.UncompressedSize64, max(f.CompressedSize64, 1)
		total += min(size, maxUnpacked+1)
		name := strings.ReplaceAll(f.Name, `\`, "/") // some programs for Windows write it
		switch _, twice := a.entries[name]; {
		case f.Flags&encryptedEntry != 0:
			return nil, errEncrypted
		case total > maxUnpacked, size > smallEntry && size/packed > maxRatio:
			return nil, errComplex
		case f.Mode()&fs.ModeSymlink != 0, twice:
			return nil, errDamaged
		case f.Method != zip.Store && f.Method != zip.Deflate:
			return nil, errDamaged
		}
		a.entries[name] = f
	}
	return a, nil
}

// has reports whether the archive has an entry.
func (a *archive) has(name string) bool { return a.entries[name] != nil }

// named returns the name of the entry with a name, also if its letters are of another case; "" if there is none.
func (a *archive) named(name string) string {
	if a.has(name) {
		return name
	}
	found := ""
	for one := range a.entries {
		if strings.EqualFold(one, name) && (found == "" || one < found) {
			found = one
		}
	}
	return found
}

// open opens an entry. Its reader fails when the archive has unpacked too much.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.entries[name]
	if f == nil {
		return nil, fail(protocol.TextDamaged, errors.New("an entry is missing"))
	}
	r, err := f.Open()
	if err != nil {
		return nil, fail(protocol.TextDamaged, err)
	}
	return &entry{r, a}, nil
}

type entry struct {
	io.ReadCloser
	a *archive
}

func (e *entry) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if e.a.left -= int64(n); e.a.left < 0 {
		return 0, errComplex
	}
	return n, err
}

// walk reads the XML of an entry.
func (a *archive) walk(name string, visit func(node) error) error {
	r, err := a.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	return walkXML(r, visit)
}

// relation is a reference from a part of an Office document to another one.
type relation struct{ kind, target string }

// relations reads the relations of a part by their identifiers; "" is the document itself.
func (a *archive) relations(part string) (map[string]relation, error) {
	folder, file := path.Split(part)
	name := folder + "_rels/" + file + ".rels"
	found := map[string]relation{}
	if !a.has(name) {
		return found, nil
	}
	return found, a.walk(name, func(n node) error {
		if n.opens("Relationship") && n.attr("TargetMode") != "External" {
			target := n.attr("Target")
			if strings.HasPrefix(target, "/") {
				target = path.Clean(target)[1:]
			} else {
				target = path.Join(folder, target)
			}
			found[n.attr("Id")] = relation{path.Base(n.attr("Type")), target}
		}
		return nil
	})
}

// partsOf returns the targets of the relations of a kind, in the order of their names.
func partsOf(all map[string]relation, kind string) (targets []string) {
	for _, one := range all {
		if one.kind == kind && !slices.Contains(targets, one.target) {
			targets = append(targets, one.target)
		}
	}
	slices.Sort(targets)
	return targets
}

// mainPart returns the name of the part of an Office document with its content.
func (a *archive) mainPart() (string, error) {
	all, err := a.relations("")
	if err != nil {
		return "", err
	}
	for _, one := range all {
		if one.kind == "officeDocument" && a.has(one.target) {
			return one.target, nil
		}
	}
	if a.has("EncryptedPackage") || a.has("EncryptionInfo") {
		return "", errEncrypted
	}
	return "", errDamaged
}

// all reads a whole entry of at most limit bytes; cut: it is longer.
func (a *archive) all(name string, limit int64) (raw []byte, cut bool, err error) {
	r, err := a.open(name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = r.Close() }() // it was only read
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, limit+1))
	if err != nil {
		return nil, false, err
	}
	return b.Bytes()[:min(n, limit)], n > limit, nil
}
