package clamdtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5" // the format has it
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"turnstone/providers/scanner/scannertest"
)

const headerSize = 512

// signatures returns an unsigned database (CUD) with the signature of the EICAR test file. The daemon reports the date of
// the database that is named daily as that of its signatures.
func signatures(at time.Time) ([]byte, error) {
	body := fmt.Appendf(nil, "Eicar-Test-Signature:0:*:%x\n", scannertest.EICAR)
	info := fmt.Appendf(nil, "%s\ndaily.ndb:%d:%x\n", header(at, "x"), len(body), sha256.Sum256(body))
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	var failures []error
	for _, file := range []struct {
		name    string
		content []byte
	}{{"daily.info", info}, {"daily.ndb", body}} {
		failures = append(failures, archive.WriteHeader(&tar.Header{Name: file.name, Size: int64(len(file.content)), Mode: 0o600, Format: tar.FormatUSTAR}))
		_, err := archive.Write(file.content)
		failures = append(failures, err)
	}
	if err := errors.Join(append(failures, archive.Close(), compressed.Close())...); err != nil {
		return nil, err
	}
	first := header(at, fmt.Sprintf("%x", md5.Sum(packed.Bytes()))) // the format has it
	return append(fmt.Appendf(nil, "%-*s", headerSize, first), packed.Bytes()...), nil
}

// header returns the header of a database of version 1 with one signature for every version of the daemon.
func header(at time.Time, sum string) string {
	return fmt.Sprintf("ClamAV-VDB:%s:1:1:1:%s:unsigned:turnstone:%d", at.UTC().Format("02 Jan 2006 15-04 -0700"), sum, at.Unix())
}
