// Package clustertest has what tests of a cluster in one process need. Only tests import it.
package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const name = "node.test"

// Authority issues the certificates of a cluster.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	expired     *atomic.Bool
}

// Expire lets all certificates expire: nodes that create a connection verify them at a time after their end.
func (a Authority) Expire() { a.expired.Store(true) }

// now is the time at which certificates are verified.
func (a Authority) now() time.Time {
	if a.expired.Load() {
		return time.Now().Add(2 * validFor)
	}
	return time.Now()
}

const validFor = time.Hour // of all certificates

// NewAuthority returns an authority that no other one trusts.
func NewAuthority(t *testing.T) Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(validFor),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return Authority{certificate, key, new(atomic.Bool)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TLS returns the configuration of a node with a new certificate.
func (a Authority) TLS(t *testing.T) *tls.Config {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(validFor),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Time: a.now, Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, ServerName: name,
	}
}

// Main runs the tests of a package and then checks that no goroutine is left. After a failed connection, protoactor
// sleeps for two seconds before it notices that the link was closed, so the check is repeated.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		var leak error
		for range leakChecks {
			if leak = goleak.Find(); leak == nil {
				break
			}
		}
		if leak != nil {
			fmt.Fprintln(os.Stderr, leak)
			code = 1
		}
	}
	os.Exit(code)
}

// leakChecks limits the checks for goroutines; each takes up to half a second.
const leakChecks = 20
