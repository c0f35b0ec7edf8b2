package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/turnstone/dev"
	"turnstone/cmd/turnstone/sitetest"
)

// certificate writes a certificate for 127.0.0.1 and its key to files, and returns a pool that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "turnstone"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return certFile, keyFile, trust
}

func TestItServesTLSAndHTTP2WithItsOwnCertificate(t *testing.T) {
	t.Parallel()
	certFile, keyFile, trust := certificate(t)
	d := sitetest.NewDevelopment(t, "TURNSTONE_TLS_CERT_FILE="+certFile, "TURNSTONE_TLS_KEY_FILE="+keyFile)
	p := d.Start(t)
	u := sitetest.NewGuest(t, "https://"+d.Public)
	u.HTTP.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	t.Cleanup(u.HTTP.CloseIdleConnections)
	response, err := u.Open(sitetest.Within(t, sitetest.HangGuard), http.MethodGet, "/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("%s %s", response.Proto, response.Status)
	}
	signedIn, err := u.Open(sitetest.Within(t, sitetest.HangGuard), http.MethodPost, "/auth/login", map[string]string{"email": dev.DemoEmail, "password": passwordOf(p)})
	if err != nil {
		t.Fatal(err)
	}
	_ = signedIn.Body.Close()
	if cookies := signedIn.Cookies(); signedIn.StatusCode != http.StatusOK || len(cookies) == 0 || cookies[0].Name != "__Host-session" || !cookies[0].Secure {
		t.Errorf("the sign-in: %s, its cookies are %v", signedIn.Status, cookies)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, MaxVersion: tls.VersionTLS11}}}
	if response, err := old.Get("https://" + d.Public + "/health"); err == nil {
		_ = response.Body.Close()
		t.Error("TLS 1.1 is accepted")
	}
	if err := os.WriteFile(certFile, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := sitetest.NewDevelopment(t, "TURNSTONE_TLS_CERT_FILE="+certFile, "TURNSTONE_TLS_KEY_FILE="+keyFile)
	if code, _, stderr := sitetest.Finish(t, broken.Environment, "dev"); code != 1 || !strings.Contains(stderr, "TURNSTONE_TLS_CERT_FILE") {
		t.Errorf("a broken certificate: %d %s", code, stderr)
	}
}
