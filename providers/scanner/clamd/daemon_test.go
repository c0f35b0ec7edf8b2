package clamd

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/providers/scanner"
	"turnstone/providers/scanner/clamdtest"
	"turnstone/providers/scanner/scannertest"
)

// start returns a scanner on a real daemon.
func start(t *testing.T, age time.Duration) (*Scanner, *clamdtest.Daemon) {
	t.Helper()
	d := clamdtest.Start(t, age)
	s, err := New(d.Address)
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

func TestARealDaemonIsAScanner(t *testing.T) {
	s, d := start(t, 0)
	scannertest.Run(t, s)
	t.Run("it is unavailable while it is killed", func(t *testing.T) {
		d.Kill()
		_, err := s.Scan(t.Context(), strings.NewReader("x"), 1)
		if readyErr := s.Ready(t.Context()); protocol.CodeOf(err) != protocol.CodeUnavailable || protocol.CodeOf(readyErr) != protocol.CodeUnavailable {
			t.Errorf("%v, %v", err, readyErr)
		}
		d.Restart()
		if err := s.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// archive returns a ZIP archive with one entry, whose content is compressed already.
func archive(t *testing.T, header *zip.FileHeader, compressed []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	header.Name, header.CompressedSize64 = "a.txt", uint64(len(compressed))
	w, err := z.CreateRaw(header)
	if err == nil {
		_, err = w.Write(compressed)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zeros returns a compressed content of this number of mebibytes.
func zeros(t *testing.T, mebibytes int) []byte {
	t.Helper()
	var one, end bytes.Buffer
	w, err := flate.NewWriter(&one, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 1<<20))
	err = errors.Join(err, w.Flush()) // so that the bytes can be repeated
	w.Reset(&end)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return append(bytes.Repeat(one.Bytes(), mebibytes), end.Bytes()...)
}

// What the daemon does not inspect is not clean. Of an entry that is larger than MaxFileSize it inspects only the beginning,
// without a report; with MaxScanSize above MaxFileSize, such an archive would be clean.
func TestARealDaemonReportsWhatItCannotInspect(t *testing.T) {
	s, _ := start(t, 0)
	const isEncrypted, larger = 1, 257 // larger than MaxFileSize, in MiB
	for _, c := range []struct {
		name    string
		content []byte
		want    scanner.Verdict
	}{
		{"an archive with malware", archive(t, &zip.FileHeader{UncompressedSize64: uint64(len(scannertest.EICAR))}, []byte(scannertest.EICAR)), scanner.Verdict{Refusal: protocol.UploadMalware}},
		{"an encrypted archive", archive(t, &zip.FileHeader{Flags: isEncrypted, UncompressedSize64: 16}, make([]byte, 16)), scanner.Verdict{Refusal: protocol.UploadEncrypted}},
		{"an archive that becomes too large", archive(t, &zip.FileHeader{Method: zip.Deflate, UncompressedSize64: larger << 20}, zeros(t, larger)), scanner.Verdict{Refusal: protocol.UploadUnscannable}},
		{"the largest upload", make([]byte, 100<<20), scanner.Verdict{Clean: true}},
	} {
		verdict, err := s.Scan(t.Context(), bytes.NewReader(c.content), int64(len(c.content)))
		if err != nil || verdict.Clean != c.want.Clean || verdict.Refusal != c.want.Refusal {
			t.Errorf("%s: %+v, %v", c.name, verdict, err)
		}
	}
	tooLong := make([]byte, 102<<20)
	if _, err := s.Scan(t.Context(), bytes.NewReader(tooLong), int64(len(tooLong))); protocol.CodeOf(err) != protocol.CodeTooLarge {
		t.Errorf("longer than the limit of the stream: %v", err)
	}
}

func TestARealDaemonWithOldSignaturesIsNotReady(t *testing.T) {
	s, _ := start(t, maxDatabaseAge+time.Hour)
	if err := s.Ready(t.Context()); protocol.CodeOf(err) != protocol.CodeUnavailable || !strings.Contains(err.Error(), "7 days old") {
		t.Errorf("%v", err)
	}
}
