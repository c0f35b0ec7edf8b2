package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/settings"
)

// Name is the DNS name in the certificate of every node.
const Name = "node.turnstone.internal"

// Load returns the TLS configuration for both sides of connections between nodes, from PEM files: the authorities, the
// node's certificate chain and its key. It refuses a certificate that peers would refuse, and a key that others can read.
//
// Changed files are used from the next handshake on, the authorities independently of the others. While the certificate and
// the key cannot be used, for example because only one of them is replaced yet, those that were loaded before stay in use,
// and log gets a warning.
func Load(log *zap.Logger, ca, cert, key string) (*tls.Config, error) {
	node := &identity{log: log, paths: [3]string{ca, cert, key}}
	if err := node.reload(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: Name,
		ClientAuth: tls.RequireAnyClientCert,
		// VerifyConnection verifies both sides, because the authorities of a configuration cannot change.
		InsecureSkipVerify: true, // see above
		VerifyConnection:   node.verify,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			_, certificate := node.current()
			return certificate, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			_, certificate := node.current()
			return certificate, nil
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

// identity is the certificate of this node and the authorities of its peers, as they were last read.
//
// Concurrency: its methods may be called from any goroutine.
type identity struct {
	log   *zap.Logger
	paths [3]string // of the authorities, the certificate and the key; set by Load

	mu     sync.Mutex
	stamps [3]stamp         // guarded by mu: of the files that were read last
	roots  *x509.CertPool   // guarded by mu
	loaded *tls.Certificate // guarded by mu
	failed error            // guarded by mu: why the files could not be used last; nil: they could
}

// stamp changes when a file is replaced or written.
type stamp struct {
	changed time.Time
	size    int64
}

// current returns what the files contain or, if they cannot be used, what they contained last.
func (i *identity) current() (*x509.CertPool, *tls.Certificate) {
	i.mu.Lock()
	defer i.mu.Unlock()
	err, before := i.reloadLocked(), i.failed
	if err != nil && (before == nil || err.Error() != before.Error()) { // once, not with each connection
		i.log.Warn("the certificates of the cluster cannot be reloaded; peers refuse the present one once it has expired", zap.Error(err))
	}
	i.failed = err
	return i.roots, i.loaded
}

// verify checks that an authority has signed the certificate of the other side, and that it is one of a node: it has the
// name, and may be used by both sides. A resumed connection is checked too.
func (i *identity) verify(state tls.ConnectionState) error {
	roots, _ := i.current()
	return verifyChain(roots, state.PeerCertificates)
}

func (i *identity) reload() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reloadLocked()
}

// reloadLocked reads the files if they have changed since they were last read.
func (i *identity) reloadLocked() error {
	var stamps [3]stamp
	for n, path := range i.paths {
		if info, err := os.Stat(path); err == nil { // reading the file reports why it cannot be used
			stamps[n] = stamp{info.ModTime(), info.Size()}
		}
	}
	if i.loaded != nil && stamps == i.stamps {
		return nil
	}
	roots, err := readRoots(i.paths[0])
	if err != nil {
		return err
	}
	i.roots = roots // a removed authority is refused although the certificate of this node is not replaced yet
	loaded, err := readPair(roots, i.paths[1], i.paths[2])
	if err != nil {
		return err
	}
	i.loaded, i.stamps = loaded, stamps
	return nil
}

// readPair reads a certificate chain and its key, and verifies the chain as peers do.
func readPair(roots *x509.CertPool, cert, key string) (*tls.Certificate, error) {
	text, err := os.ReadFile(cert)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the node: %w", err)
	}
	private, err := settings.ReadSecret(key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the node: %w", err)
	}
	pair, err := tls.X509KeyPair(text, []byte(private))
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", cert, key, err)
	}
	chain := make([]*x509.Certificate, len(pair.Certificate))
	for n, der := range pair.Certificate {
		if chain[n], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("%s: %w", cert, err)
		}
	}
	if err := verifyChain(roots, chain); err != nil {
		return nil, fmt.Errorf("%s: %w", cert, err)
	}
	return &pair, nil
}

// verifyChain verifies a chain, with the certificate of a node first, for both sides of a connection.
func verifyChain(roots *x509.CertPool, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("there is no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, one := range chain[1:] {
		intermediates.AddCert(one)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, DNSName: Name, KeyUsages: []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether there is a file at path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func parseCertificate(path string, text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s contains no certificate (PEM)", path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certificate, nil
}
