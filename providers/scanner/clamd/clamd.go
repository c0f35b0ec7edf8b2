// Package clamd is a scanner that uses a ClamAV daemon, with its INSTREAM protocol, on a unix socket or TCP.
//
// The daemon must be configured to refuse content that it does not scan: AlertExceedsMax yes, StreamMaxLength, MaxFileSize
// and MaxScanSize at least the upload limit, and MaxScanSize not above MaxFileSize. Otherwise its reply "OK" means nothing.
// docs/files.md has the values.
package clamd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/timelimit"
	"turnstone/providers/scanner"
)

const (
	engine = "clamav"

	scanBase    = 30 * time.Second
	scanEachMiB = time.Second
	scanCap     = 180 * time.Second
	// maxDatabaseAge is the age of signatures above which Ready fails.
	maxDatabaseAge = 7 * 24 * time.Hour
	// databaseDate is the layout of the date in the reply to VERSION: "ClamAV 1.4.6/27800/Wed Oct 22 09:41:12 2026".
	databaseDate = time.ANSIC
	maxReply     = 4 << 10
	chunk        = 64 << 10
)

var (
	connectTimeout = timelimit.Of(time.Second)
	commandTimeout = timelimit.Of(2 * time.Second)
)

// Scanner is a client of one daemon. It opens a connection for each command.
type Scanner struct {
	network, address string
	// tested is the version of the daemon and its signatures that has detected the test file; empty: none yet.
	tested atomic.Value
}

var _ scanner.Scanner = (*Scanner)(nil)

// New returns a Scanner for an address: host:port, tcp:host:port, or the path of a socket, with or without "unix:"
// before it. It does not contact the daemon.
func New(address string) (*Scanner, error) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix || strings.HasPrefix(address, "/") {
		if path == "" {
			return nil, errors.New("malware scanner: the path of the socket is empty")
		}
		return &Scanner{network: "unix", address: path}, nil
	}
	address = strings.TrimPrefix(address, "tcp:")
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("malware scanner: %w", err)
	}
	return &Scanner{network: "tcp", address: address}, nil
}

// Scan implements scanner.Scanner.
func (s *Scanner) Scan(ctx context.Context, body io.Reader, size int64) (scanner.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTime(size))
	defer cancel()
	connection, err := s.connect(ctx, "INSTREAM")
	if err != nil {
		return scanner.Verdict{}, err
	}
	defer connection.close()
	sendErr := stream(connection, body)
	var fromBody bodyError
	if errors.As(sendErr, &fromBody) {
		return scanner.Verdict{}, fmt.Errorf("reading the body to be scanned: %w", fromBody.error)
	}
	reply, err := connection.reply() // also if sending failed: the daemon sends the reason first
	if err != nil {
		return scanner.Verdict{}, unavailable(ctx, errors.Join(sendErr, err))
	}
	return parseVerdict(reply)
}

// parseVerdict turns the daemon's reply into a verdict. Any reply that is not exactly a known one is an error.
func parseVerdict(reply string) (scanner.Verdict, error) {
	result, ofStream := strings.CutPrefix(reply, "stream: ")
	signature, found := strings.CutSuffix(result, " FOUND")
	switch {
	case ofStream && result == "OK":
		return scanner.Verdict{Clean: true, Engine: engine}, nil
	case ofStream && found && signature != "":
		return scanner.Verdict{Signature: signature, Refusal: refusal(signature), Engine: engine}, nil
	case strings.HasPrefix(reply, "INSTREAM size limit exceeded"):
		return scanner.Verdict{}, protocol.Errorf(protocol.CodeTooLarge, "larger than the malware scanner accepts")
	default:
		return scanner.Verdict{}, protocol.Errorf(protocol.CodeUnavailable, "the malware scanner gave no verdict: %q", reply)
	}
}

// refusal returns what a signature means. The daemon also reports a content of which it could not inspect everything.
func refusal(signature string) protocol.UploadFailureCode {
	switch {
	case strings.HasPrefix(signature, "Heuristics.Encrypted"):
		return protocol.UploadEncrypted
	case strings.HasPrefix(signature, "Heuristics.Limits.Exceeded"):
		return protocol.UploadUnscannable
	}
	return protocol.UploadMalware
}

// stream sends the body in the chunks of INSTREAM, each a length and bytes. Length 0 ends it.
func stream(to io.Writer, body io.Reader) error {
	const header = 4
	buffer := make([]byte, header+chunk)
	for {
		n, err := body.Read(buffer[header:])
		if n > 0 {
			binary.BigEndian.PutUint32(buffer, uint32(n))
			if _, err := to.Write(buffer[:header+n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			_, err := to.Write(make([]byte, header))
			return err
		}
		if err != nil {
			return bodyError{err}
		}
	}
}

// Ready implements scanner.Scanner: the daemon responds, its signatures are not older than maxDatabaseAge, and it has detected
// the test file with them.
func (s *Scanner) Ready(ctx context.Context) error {
	pong, err := s.command(ctx, "PING")
	if err != nil {
		return err
	}
	if pong != "PONG" {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner responds to PING with %q", pong)
	}
	version, err := s.command(ctx, "VERSION")
	if err != nil {
		return err
	}
	parts := strings.SplitN(version, "/", 3)
	if len(parts) != 3 {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner has no signatures: %q", version)
	}
	date, err := time.ParseInLocation(databaseDate, parts[2], time.Local) // the daemon writes its local time
	if err != nil {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner's signatures have no date: %q", version)
	}
	if age := time.Since(date); age > maxDatabaseAge {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner's signatures are %d days old", int(age.Hours()/24))
	}
	if s.tested.Load() == version {
		return nil
	}
	verdict, err := s.Scan(ctx, bytes.NewReader(scanner.TestFile()), int64(len(scanner.TestFile())))
	switch {
	case err != nil:
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner cannot scan the EICAR test file: %w", err)
	case verdict.Refusal != protocol.UploadMalware:
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner does not detect the EICAR test file")
	}
	s.tested.Store(version)
	return nil
}

// Engine implements scanner.Scanner.
func (s *Scanner) Engine() string { return engine }

func (s *Scanner) command(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	connection, err := s.connect(ctx, command)
	if err != nil {
		return "", err
	}
	defer connection.close()
	reply, err := connection.reply()
	if err != nil {
		return "", unavailable(ctx, err)
	}
	return reply, nil
}

// session is one connection with one command. It ends with its context.
type session struct {
	net.Conn
	stopAfterFunc func() bool
}

func (s *Scanner) connect(ctx context.Context, command string) (*session, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	connection, err := dialer.DialContext(ctx, s.network, s.address)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	// A deadline in the past ends a read or write that is waiting. Setting it fails only on a closed connection.
	stop := context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	opened := &session{Conn: connection, stopAfterFunc: stop}
	if _, err := fmt.Fprintf(opened, "z%s\x00", command); err != nil {
		opened.close()
		return nil, unavailable(ctx, err)
	}
	return opened, nil
}

func (s *session) reply() (string, error) {
	text, err := bufio.NewReader(io.LimitReader(s, maxReply)).ReadString(0)
	if err != nil {
		return "", fmt.Errorf("reading the reply: %w", err)
	}
	return strings.TrimSuffix(text, "\x00"), nil
}

func (s *session) close() {
	s.stopAfterFunc()
	_ = s.Close() // the result does not depend on it
}

func scanTime(size int64) time.Duration {
	return min(scanBase+time.Duration(max(size, 0)>>20)*scanEachMiB, scanCap)
}

// unavailable returns err as a failure of the scanner, or the error of ctx if the caller cancelled.
func unavailable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return protocol.Errorf(protocol.CodeUnavailable, "malware scanner: %w", err)
}

// bodyError distinguishes errors of the body from errors of the connection.
type bodyError struct{ error }
