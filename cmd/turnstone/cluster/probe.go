package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"
)

// preface is what an HTTP/2 client sends first, followed by empty settings. The server of the cluster answers with its
// own settings.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// Probe connects to the cluster address of a node as another node does, and waits for its first bytes: a node that refuses
// the certificate of its client does so only after the client's part of the handshake. ctx needs a deadline.
func Probe(ctx context.Context, config *tls.Config, address string) error {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to the node at %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // nothing of value was sent
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err := conn.Write([]byte(preface)); err != nil {
		return fmt.Errorf("writing to the node at %s: %w", address, err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("the node at %s did not accept this connection: %w", address, err)
	}
	return nil
}
