// Package clamd asks a ClamAV daemon, over its INSTREAM protocol, on a unix socket or TCP.
//
// The daemon must be set up to refuse what it does not scan: AlertExceedsMax yes, and StreamMaxLength, MaxFileSize and
// MaxScanSize at least the upload limit. Its answer "OK" means nothing otherwise.
package clamd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/providers/scanner"
)

const (
	engine = "clamav"

	connectTimeout = time.Second
	commandTimeout = 2 * time.Second
	scanBase       = 30 * time.Second
	scanEachMiB    = time.Second
	scanCap        = 180 * time.Second
	// maxDatabaseAge: readiness fails with signatures that are older.
	maxDatabaseAge = 7 * 24 * time.Hour
	// databaseDate is how VERSION writes it: "ClamAV 1.4.6/27800/Wed Oct 22 09:41:12 2026".
	databaseDate = time.ANSIC
	maxReply     = 4 << 10
	chunk        = 64 << 10
)

// Scanner is a client of one daemon; it keeps no connection.
type Scanner struct {
	network, address string
}

var _ scanner.Scanner = (*Scanner)(nil)

// New takes host:port, or a path or unix:path of a socket. It asks the daemon nothing.
func New(address string) (*Scanner, error) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix || strings.HasPrefix(address, "/") {
		if path == "" {
			return nil, errors.New("malware scanner: the path of its socket is empty")
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
		return scanner.Verdict{}, fmt.Errorf("reading what is to be scanned: %w", fromBody.error)
	}
	reply, err := connection.reply() // also when sending failed: the daemon hangs up after it said why
	if err != nil {
		return scanner.Verdict{}, unavailable(ctx, errors.Join(sendErr, err))
	}
	return judge(reply)
}

// judge takes the daemon's answer at its word, and nothing else for a word.
func judge(reply string) (scanner.Verdict, error) {
	answer, ofStream := strings.CutPrefix(reply, "stream: ")
	signature, found := strings.CutSuffix(answer, " FOUND")
	switch {
	case ofStream && answer == "OK":
		return scanner.Verdict{Clean: true, Engine: engine}, nil
	case ofStream && found && signature != "":
		return scanner.Verdict{Signature: signature, Engine: engine}, nil
	case strings.HasPrefix(reply, "INSTREAM size limit exceeded"):
		return scanner.Verdict{}, protocol.Errorf(protocol.CodeTooLarge, "larger than the malware scanner takes")
	default:
		return scanner.Verdict{}, protocol.Errorf(protocol.CodeUnavailable, "the malware scanner gave no verdict: %q", reply)
	}
}

// stream sends the body in the chunks of INSTREAM: length, bytes; length 0 at the end.
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

// Ready implements scanner.Scanner: the daemon answers and its signatures are of this week.
func (s *Scanner) Ready(ctx context.Context) error {
	pong, err := s.ask(ctx, "PING")
	if err != nil {
		return err
	}
	if pong != "PONG" {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner answers PING with %q", pong)
	}
	version, err := s.ask(ctx, "VERSION")
	if err != nil {
		return err
	}
	parts := strings.SplitN(version, "/", 3)
	if len(parts) != 3 {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner has no signatures: %q", version)
	}
	made, err := time.ParseInLocation(databaseDate, parts[2], time.Local) // it writes its own local time
	if err != nil {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner's signatures have no date: %q", version)
	}
	if age := time.Since(made); age > maxDatabaseAge {
		return protocol.Errorf(protocol.CodeUnavailable, "the malware scanner's signatures are %d days old", int(age.Hours()/24))
	}
	return nil
}

// Engine implements scanner.Scanner.
func (s *Scanner) Engine() string { return engine }

func (s *Scanner) ask(ctx context.Context, command string) (string, error) {
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

// session is one connection with one command; the end of its context ends it.
type session struct {
	net.Conn
	forget func() bool
}

func (s *Scanner) connect(ctx context.Context, command string) (*session, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	connection, err := dialer.DialContext(ctx, s.network, s.address)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	// A deadline in the past wakes whoever reads or writes. It fails only on a closed connection.
	forget := context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	opened := &session{Conn: connection, forget: forget}
	if _, err := fmt.Fprintf(opened, "z%s\x00", command); err != nil {
		opened.close()
		return nil, unavailable(ctx, err)
	}
	return opened, nil
}

func (s *session) reply() (string, error) {
	text, err := bufio.NewReader(io.LimitReader(s, maxReply)).ReadString(0)
	if err != nil {
		return "", fmt.Errorf("reading its answer: %w", err)
	}
	return strings.TrimSuffix(text, "\x00"), nil
}

func (s *session) close() {
	s.forget()
	_ = s.Close() // nothing is lost with it
}

func scanTime(size int64) time.Duration {
	return min(scanBase+time.Duration(max(size, 0)>>20)*scanEachMiB, scanCap)
}

// unavailable is the scanner's failure, unless the caller gave up.
func unavailable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return protocol.Errorf(protocol.CodeUnavailable, "malware scanner: %w", err)
}

// bodyError tells failures of the body from failures of the connection.
type bodyError struct{ error }
