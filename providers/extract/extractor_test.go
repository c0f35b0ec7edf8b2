package extract_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/providers/extract"
	"turnstone/providers/extract/extracttest"
)

// command returns the command of a child with a behaviour.
func command(behaviour string) []string { return []string{os.Args[0], "child", behaviour} }

func readWith(t *testing.T, e *extract.Extractor, content, mediaType string) (*protocol.Extraction, error) {
	t.Helper()
	return e.Extract(t.Context(), strings.NewReader(content), mediaType)
}

// opened returns a function that opens a content.
func opened(content string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

// thumbnailOf returns a picture with a side of this length, as JSON has it.
func thumbnailOf(side int) string {
	return base64.StdEncoding.EncodeToString([]byte(extracttest.Picture("jpeg", side, 1)))
}

func TestAnEncryptedArchiveIsFound(t *testing.T) {
	e := extract.New(command("read")...)
	tides := []extracttest.Entry{{Name: "tides.txt", Body: "Tides come and go."}}
	for content, want := range map[string]bool{
		extracttest.EncryptedZip(tides):                                                        true,
		extracttest.Zip(tides):                                                                 false,
		extracttest.EncryptedZip(tides)[:100]:                                                  false, // damaged
		extracttest.Zip([]extracttest.Entry{{Name: "a"}, {Name: "a"}}):                         false,
		extracttest.Zip([]extracttest.Entry{{Name: "bomb", Body: strings.Repeat("0", 4<<20)}}): false,
	} {
		if got, err := e.Encrypted(t.Context(), opened(content), "application/zip"); err != nil || got != want {
			t.Errorf("%d bytes: %t, %v", len(content), got, err)
		}
	}
}

func TestOnlyContentsThatCanBeEncryptedAreOpened(t *testing.T) {
	broken := errors.New("the store is down")
	open := func() (io.ReadCloser, error) { return nil, broken }
	e := extract.New(command("crash")...)
	if is, err := e.Encrypted(t.Context(), open, "text/plain"); err != nil || is {
		t.Errorf("a text: %t, %v", is, err)
	}
	if _, err := e.Encrypted(t.Context(), open, "application/zip"); !errors.Is(err, broken) {
		t.Errorf("an archive: %v", err)
	}
	if is, err := e.Encrypted(t.Context(), opened("x"), "application/zip"); err != nil || is {
		t.Errorf("an archive that ends the child: %t, %v", is, err)
	}
	slow := extract.NewWithTimeout(50*time.Millisecond, command("loop")...)
	if is, err := slow.Encrypted(t.Context(), opened("x"), "application/zip"); err != nil || is {
		t.Errorf("an archive that takes too long: %t, %v", is, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Encrypted(ctx, opened("x"), "application/zip"); err == nil {
		t.Error("no error after the context has ended")
	}
}

func TestAChildThatFailsIsAnErrorThatAnotherAttemptMayAvoid(t *testing.T) {
	for _, behaviour := range []string{
		"crash", "signal", "garbage", "", "null", "[]", `{"state":"pending"}`, `{"state":"failed"}`, `{"state":"failed","reason":"no_reader"}`,
		`{"state":"none","text":"x"}`, `{"state":"done","text":"\u0000"}`, `{"state":"done","width":-1}`,
		`{"state":"none","thumbnail":"PHN2Zz4="}`, `{"state":"none","thumbnail":""}`, `{"state":"done","thumbnail":"` + thumbnailOf(40) + `"}`, `{"state":"none","thumbnail":"` + thumbnailOf(600) + `"}`,
		`{"state":"none","picture":"` + thumbnailOf(40) + `"}`, `{"state":"none","thumbnail":"` + thumbnailOf(40) + `","picture":"` + thumbnailOf(1600) + `"}`,
		`{"state":"done","text":"abc","pages":1,"blocks":[{"kind":"page","page":1,"offset":1,"length":3}]}`,
		`{"state":"done","text":"abc","pages":1,"blocks":[{"kind":"page","page":1,"offset":-1,"length":3}]}`,
		`{"state":"done","text":"abc","pages":2,"blocks":[{"kind":"page","page":1,"offset":0,"length":2},{"kind":"page","page":2,"offset":1,"length":2}]}`,
		`{"state":"done","text":"abc","pages":1,"blocks":[{"kind":"page","page":2,"offset":0,"length":3}]}`,
		`{"state":"done","text":"abc","pages":1,"blocks":[{"kind":"line","page":1,"offset":0,"length":3}]}`,
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			x, err := readWith(t, extract.New(command(behaviour)...), "x", "text/plain")
			if err == nil {
				t.Errorf("the result is %+v", x)
			}
		})
	}
}

func TestAChildThatExceedsALimitIsKilled(t *testing.T) {
	for behaviour, timeout := range map[string]time.Duration{"loop": 500 * time.Millisecond, "allocate": time.Minute} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			x, err := readWith(t, extract.NewWithTimeout(timeout, command(behaviour)...), "x", "text/plain")
			if err != nil || x.State != protocol.TextFailed || x.Reason != protocol.TextTooComplex {
				t.Errorf("%+v, %v", x, err)
			}
		})
	}
}

func TestAChildThatPrintsWithoutEndIsKilled(t *testing.T) {
	if x, err := readWith(t, extract.New(command("flood")...), "x", "text/plain"); err == nil {
		t.Errorf("%+v", x)
	}
}

func TestTheEndOfTheContextKillsAChild(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	x, err := extract.New(command("loop")...).Extract(ctx, strings.NewReader("x"), "text/plain")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestAChildHasNoEnvironmentAndNoNetwork(t *testing.T) {
	x, err := readWith(t, extract.New(command("environment")...), "x", "text/plain")
	if err != nil || x.Text != "[]" {
		t.Errorf("%+v, %v", x, err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	e := extract.New(command("dial")...)
	x, err = readWith(t, e, server.Addr().String(), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	if e.Shared() {
		t.Skip("this system allows no network namespaces to unprivileged processes")
	}
	if !strings.Contains(x.Text, "network is unreachable") {
		t.Errorf("the child connected: %s", x.Text)
	}
}

func TestAMissingProgramIsAnError(t *testing.T) {
	if x, err := readWith(t, extract.New("/nonexistent/turnstone"), "x", "text/plain"); err == nil {
		t.Errorf("%+v", x)
	}
}

func TestTheProcessThatBecomesPdftotextKeepsItsAddressSpace(t *testing.T) {
	e := extract.New(command("watch")...)
	for range 10 { // the moment is short
		if x, err := readWith(t, e, extracttest.OnePage("Tides"), "application/pdf"); err != nil || x.Text != "Tides\n" {
			t.Fatalf("%+v, %v", x, err)
		}
	}
}

// replaceProgram makes a shell script one of the programs that read PDFs.
func replaceProgram(t *testing.T, program, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// Some versions of pdftotext refuse to print a text that must not be copied. Reading it needs no password.
func TestAPDFWhoseTextMustNotBeCopiedIsNotEncrypted(t *testing.T) {
	replaceProgram(t, "pdftotext", "echo Copying of text from this document is not allowed. >&2; exit 3")
	e := extract.New(command("read")...)
	if is, err := e.Encrypted(t.Context(), opened(extracttest.OnePage("x")), "application/pdf"); err != nil || is {
		t.Errorf("%t, %v", is, err)
	}
	if x, err := readWith(t, e, extracttest.OnePage("x"), "application/pdf"); err != nil || x.Reason != protocol.TextEncrypted {
		t.Errorf("%+v, %v", x, err)
	}
}

// The data for scripts of East Asia may be missing. What was not read is said.
func TestAPDFWhoseCharactersCannotBeReadIsNotEmpty(t *testing.T) {
	const report = `echo "Syntax Error: Missing language pack for 'Adobe-Japan1' mapping" >&2; `
	for printed, want := range map[string]string{`printf '\f'`: `failed no_reader`, `printf 'Tides\f'`: `done [no_font Adobe-Japan1] jpeg 396x512 wwww of 1 page 1 "Tides"`} {
		replaceProgram(t, "pdftotext", report+printed)
		x, err := readWith(t, extract.New(command("read")...), extracttest.OnePage("x"), "application/pdf")
		if err != nil || strings.ReplaceAll(extracttest.Summary(x), `\n`, "") != want {
			t.Errorf("%s, %v", extracttest.Summary(x), err)
		}
	}
}

func TestPdftotextIsLimited(t *testing.T) {
	replaceProgram(t, "pdftotext", "echo $(ulimit -v; ulimit -t; ulimit -n; ulimit -f; ulimit -c)")
	x, err := readWith(t, extract.New(command("read")...), extracttest.OnePage("x"), "application/pdf")
	if err != nil || x.Text != "1048576 30 64 0 0\n" {
		t.Errorf("%+v, %v", x, err)
	}
}

// A PDF may have taken over the program that draws it, so what it prints is not trusted.
func TestWhatDrawsAPageIsNotTrusted(t *testing.T) {
	folder := t.TempDir()
	script := func(content string) string {
		file := filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256([]byte(content))))
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "exec cat " + file
	}
	for name, c := range map[string]struct {
		script string
		drawn  bool
	}{
		"nothing": {"exit 0", false}, "a failure": {"echo x; exit 1", false}, "no end": {"exec yes", false}, "a text": {script("Tides"), false},
		"a JPEG": {script(extracttest.Picture("jpeg", 30, 20)), false}, "half a PNG": {script(extracttest.Picture("png", 30, 20)[:60]), false},
		"a PNG": {script(extracttest.Picture("png", 30, 20)), true}, "a PNG with a program behind it": {script(extracttest.Picture("png", 30, 20) + "<script>"), true},
	} {
		t.Run(name, func(t *testing.T) {
			replaceProgram(t, "pdftoppm", c.script)
			x, err := readWith(t, extract.New(command("read")...), extracttest.OnePage("Tides"), "application/pdf")
			if err != nil || x.State != protocol.TextDone || x.Text != "Tides\n" || (x.Thumbnail != nil) != c.drawn || x.Picture != nil || bytes.Contains(x.Thumbnail, []byte("script")) {
				t.Errorf("%+v, %v", x, err)
			}
		})
	}
}

func TestWithoutPdftotextAPDFHasNoReader(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	x, err := readWith(t, extract.New(command("read")...), extracttest.OnePage("x"), "application/pdf")
	if err != nil || x.State != protocol.TextFailed || x.Reason != protocol.TextNoReader {
		t.Errorf("%+v, %v", x, err)
	}
}
