package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"turnstone/cmd/turnstone/settings"
)

// Name is the DNS name in the certificate of every node.
const Name = "node.turnstone.internal"

// Load returns the TLS configuration for both sides of connections between nodes, from PEM files: the authorities, the
// node's certificate chain and its key. It refuses a certificate that peers would refuse, and a key that others can read.
//
// Renewed files of the certificate and the key are used from the next handshake on. While they cannot be used, for
// example because only one of them is replaced yet, the previous certificate stays in use. The authorities are read once.
func Load(ca, cert, key string) (*tls.Config, error) {
	roots, err := readRoots(ca)
	if err != nil {
		return nil, err
	}
	node := &nodeCertificate{roots: roots, cert: cert, key: key}
	if err := node.reload(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    roots,
		ServerName: Name,
		ClientCAs:  roots,
		ClientAuth: tls.RequireAndVerifyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return node.current(), nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return node.current(), nil
		},
		// A client verifies the name of the server. A server verifies only the signature and the purpose of a client's
		// certificate by itself.
		VerifyConnection: func(state tls.ConnectionState) error {
			return state.PeerCertificates[0].VerifyHostname(Name)
		},
	}, nil
}

// Expiry returns the end of the validity of the first certificate of a PEM file.
func Expiry(path string) (time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading a certificate: %w", err)
	}
	certificate, err := parseCertificate(path, text)
	if err != nil {
		return time.Time{}, err
	}
	return certificate.NotAfter, nil
}

func readRoots(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate (PEM)", path)
	}
	return roots, nil
}

// nodeCertificate is the certificate of this node, as it was last read.
//
// Concurrency: current may be called from any goroutine.
type nodeCertificate struct {
	// Set by Load.
	roots     *x509.CertPool
	cert, key string // paths

	mu     sync.Mutex
	stamps [2]stamp         // guarded by mu: of the files of loaded
	loaded *tls.Certificate // guarded by mu
}

// stamp changes when a file is replaced or written.
type stamp struct {
	changed time.Time
	size    int64
}

// current returns the certificate in the files or, if they cannot be used, the last one that could.
func (n *nodeCertificate) current() *tls.Certificate {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.reloadLocked() // `turnstone doctor` reports why; peers refuse the previous certificate once it has expired
	return n.loaded
}

func (n *nodeCertificate) reload() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reloadLocked()
}

// reloadLocked reads the files if they have changed since they were last read.
func (n *nodeCertificate) reloadLocked() error {
	var stamps [2]stamp
	for i, path := range []string{n.cert, n.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("reading the certificate of the node: %w", err)
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	if n.loaded != nil && stamps == n.stamps {
		return nil
	}
	loaded, err := readPair(n.roots, n.cert, n.key)
	if err != nil {
		return err
	}
	n.loaded, n.stamps = loaded, stamps
	return nil
}

// readPair reads a certificate chain and its key, and verifies the chain as peers do.
func readPair(roots *x509.CertPool, cert, key string) (*tls.Certificate, error) {
	chain, err := os.ReadFile(cert)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the node: %w", err)
	}
	private, err := settings.ReadSecret(key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the node: %w", err)
	}
	pair, err := tls.X509KeyPair(chain, []byte(private))
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", cert, key, err)
	}
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		one, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cert, err)
		}
		intermediates.AddCert(one)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, DNSName: Name, KeyUsages: []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cert, err)
		}
	}
	return &pair, nil
}

// exists reports whether there is a file at path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
