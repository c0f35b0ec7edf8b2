package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/protocol/clocktest"
)

// issue creates a node's certificate and returns the paths of its files.
func issue(t *testing.T, folder, node string, hosts ...string) (cert, key string) {
	t.Helper()
	if _, err := Issue(Request{Folder: folder, Node: node, Hosts: hosts, Days: 365}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, node+certSuffix), filepath.Join(folder, node+keySuffix)
}

func load(t *testing.T, folder, node string) *tls.Config {
	t.Helper()
	config, err := Load(zap.NewNop(), filepath.Join(folder, "ca.crt"), filepath.Join(folder, node+certSuffix), filepath.Join(folder, node+keySuffix))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// sign creates the files of a certificate that Issue would not create.
func sign(t *testing.T, folder, node string, change func(*x509.Certificate)) {
	t.Helper()
	ca, _, err := openAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: node}, NotBefore: time.Now().Add(-2 * day), NotAfter: time.Now().Add(day), DNSNames: []string{Name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writePair(folder, node, der, key); err != nil {
		t.Fatal(err)
	}
}

// handshake connects a client to a server over TCP, and returns the certificate of each that the other accepted.
func handshake(t *testing.T, server, client *tls.Config) (ofServer, ofClient *x509.Certificate, err error) {
	t.Helper()
	socket, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	type accepted struct {
		peer *x509.Certificate
		err  error
	}
	done := make(chan accepted, 1)
	go func() {
		conn, err := socket.Accept()
		if err != nil {
			done <- accepted{nil, err}
			return
		}
		defer func() { _ = conn.Close() }()
		secure := conn.(*tls.Conn)
		if err := secure.HandshakeContext(t.Context()); err != nil {
			done <- accepted{nil, err}
			return
		}
		_, err = conn.Write([]byte("x"))
		done <- accepted{secure.ConnectionState().PeerCertificates[0], err}
	}()
	defer func() { _ = socket.Close() }()
	dialer := tls.Dialer{Config: client}
	conn, err := dialer.DialContext(t.Context(), "tcp", socket.Addr().String())
	if err != nil {
		_ = socket.Close()
		return nil, nil, errors.Join(err, (<-done).err)
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1)) // a server that refuses the client says so after the client's handshake
	got := <-done
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], got.peer, errors.Join(err, got.err)
}

func TestNodesWithCertificatesOfOneAuthorityAcceptOneAnother(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "certs")
	issue(t, folder, "node")
	issue(t, folder, "node-2", "10.0.0.8", "node-2.example.org")
	for path, mode := range map[string]os.FileMode{"ca.key": 0o600, "node.key": 0o600, "node-2.key": 0o600} {
		if info, err := os.Stat(filepath.Join(folder, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	one, two := load(t, folder, "node"), load(t, folder, "node-2")
	ofServer, ofClient, err := handshake(t, one, two)
	if err != nil {
		t.Fatal(err)
	}
	if ofServer.Subject.CommonName != "node" || ofClient.Subject.CommonName != "node-2" || !ofClient.IPAddresses[0].Equal(net.ParseIP("10.0.0.8")) ||
		!slices.Equal(ofClient.DNSNames, []string{Name, "node-2.example.org"}) {
		t.Errorf("%v, %v", ofServer.Subject, ofClient)
	}
	if left := time.Until(mustExpire(t, filepath.Join(folder, "node.crt"))); left < 364*day || left > 365*day {
		t.Errorf("the certificate of a node is valid for %s", left)
	}
	if left := time.Until(mustExpire(t, filepath.Join(folder, "ca.crt"))); left < 3650*day || left > 3660*day {
		t.Errorf("the authority is valid for %s", left)
	}
}

func mustExpire(t *testing.T, path string) time.Time {
	t.Helper()
	at, err := Expiry(path)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestACertificateOfAnotherKindIsRefusedByBothSides gives one side a certificate that Load itself would refuse.
func TestACertificateOfAnotherKindIsRefusedByBothSides(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	issue(t, folder, "node")
	issue(t, other, "node")
	sign(t, folder, "unnamed", func(c *x509.Certificate) { c.DNSNames = []string{"node.example.org"} })
	sign(t, folder, "expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	sign(t, folder, "server", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] })
	good := load(t, folder, "node")
	for _, c := range []struct {
		name, cert string
	}{
		{"of another authority", filepath.Join(other, "node")},
		{"without the name", filepath.Join(folder, "unnamed")},
		{"expired", filepath.Join(folder, "expired")},
		{"only for servers", filepath.Join(folder, "server")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Load(zap.NewNop(), filepath.Join(folder, "ca.crt"), c.cert+certSuffix, c.cert+keySuffix); err == nil || !strings.Contains(err.Error(), c.cert+certSuffix) {
				t.Errorf("Load: %v", err)
			}
			pair, err := tls.LoadX509KeyPair(c.cert+certSuffix, c.cert+keySuffix)
			if err != nil {
				t.Fatal(err)
			}
			bad := good.Clone()
			bad.VerifyConnection = nil
			bad.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
			bad.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			if _, _, err := handshake(t, good, bad); err == nil {
				t.Error("a server accepts it")
			}
			if _, _, err := handshake(t, bad, good); err == nil {
				t.Error("a client accepts it")
			}
		})
	}
	anonymous := good.Clone()
	anonymous.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	if _, _, err := handshake(t, good, anonymous); err == nil {
		t.Error("a server accepts a client without a certificate")
	}
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, _, err := handshake(t, good, old); err == nil {
		t.Error("a server accepts TLS 1.2")
	}
}

func TestRenewedFilesAreUsedWithoutARestart(t *testing.T) {
	folder := t.TempDir()
	cert, key := issue(t, folder, "node")
	config := load(t, folder, "node")
	names := func() [2]string {
		t.Helper()
		server, client, err := handshake(t, config, config)
		if err != nil {
			t.Fatal(err)
		}
		return [2]string{server.Subject.CommonName, client.Subject.CommonName}
	}
	if got := names(); got != [2]string{"node", "node"} {
		t.Fatalf("%v", got)
	}
	newCert, newKey := issue(t, folder, "renewed")
	for _, step := range []struct{ from, to, want string }{{newKey, key, "node"}, {newCert, cert, "renewed"}} {
		if err := os.Rename(step.from, step.to); err != nil {
			t.Fatal(err)
		}
		if got := names(); got != [2]string{step.want, step.want} {
			t.Errorf("after %s: %v", step.to, got)
		}
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != [2]string{"renewed", "renewed"} {
		t.Errorf("without a file: %v", got)
	}
}

func TestACertificateOfARemovedAuthorityIsRefusedWithoutARestart(t *testing.T) {
	leaked, renewed := t.TempDir(), t.TempDir()
	cert, key := issue(t, leaked, "node")
	stolen := load(t, leaked, "node")
	stolen.VerifyConnection = nil // only the server refuses
	newCert, newKey := issue(t, renewed, "node")
	ca := filepath.Join(leaked, "ca.crt")
	read := func(path string) []byte {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	// The files of the node are others than those that were stolen.
	folder := t.TempDir()
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authorities := write("ca.crt", read(ca))
	logged, warnings := observer.New(zap.WarnLevel)
	config, err := Load(zap.New(logged), authorities, write("node.crt", read(cert)), write("node.key", read(key)))
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(client *tls.Config) bool {
		_, _, err := handshake(t, config, client)
		return err == nil
	}
	if !accepts(stolen) {
		t.Fatal("the certificate is refused before its authority is removed")
	}
	renewedCA := read(filepath.Join(renewed, "ca.crt"))
	// The authority is removed before the node has a certificate of another one, and while it has none.
	for _, cut := range []func(){func() {}, func() { _ = os.Remove(filepath.Join(folder, "node.crt")) }} {
		cut()
		if write("ca.crt", renewedCA); accepts(stolen) {
			t.Error("before its own certificate is replaced, the node accepts one of the removed authority")
		}
		if write("ca.crt", read(ca)); !accepts(stolen) {
			t.Error("a certificate of an authority that was added again is refused")
		}
	}
	if warnings.Len() == 0 {
		t.Error("nothing was logged while the certificate could not be reloaded")
	}
	write("ca.crt", append(read(ca), renewedCA...))
	write("node.crt", read(newCert))
	write("node.key", read(newKey))
	if !accepts(stolen) || !accepts(config) {
		t.Error("while both authorities are in the file, a certificate of one of them is refused")
	}
	write("ca.crt", renewedCA)
	if accepts(stolen) {
		t.Error("a certificate of the removed authority is accepted")
	}
	if !accepts(config) {
		t.Error("a certificate of the new authority is refused")
	}
}

func TestIssueOverwritesNothingAndLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	issue(t, folder, "node")
	read := func() map[string]string {
		t.Helper()
		files := map[string]string{}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[entry.Name()] = string(text)
		}
		return files
	}
	before := read()
	for _, r := range []Request{
		{Node: "node", Days: 365},
		{Node: "ca", Days: 365},
		{Node: "../node-2", Days: 365},
		{Node: "", Days: 365},
		{Node: "node-2"},
		{Node: "node-2", Days: 36500},
		{Node: "node-2", Days: 365, Hosts: []string{""}},
		{Node: "node-2", Days: 365, Hosts: []string{"höst"}},
	} {
		r.Folder = folder
		if created, err := Issue(r); err == nil || len(created) > 0 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, %v", r, created, err)
		}
	}
	if after := read(); len(after) != 4 || after["node.key"] != before["node.key"] || after["ca.key"] != before["ca.key"] {
		t.Errorf("the folder has %d files, or others", len(after))
	}
	if err := os.Remove(filepath.Join(folder, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := Issue(Request{Folder: folder, Node: "node-2", Days: 365}); err == nil || !strings.Contains(err.Error(), "needs both") {
		t.Errorf("without the key of the authority: %v", err)
	}
}

func TestLoadRefusesFilesThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	cert, key := issue(t, folder, "node")
	ca := filepath.Join(folder, "ca.crt")
	noise := filepath.Join(folder, "noise")
	if err := os.WriteFile(noise, []byte("noise"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][3]string{{noise, cert, key}, {ca, noise, key}, {ca, cert, noise}, {ca, ca, key}, {key, cert, key}} {
		if _, err := Load(zap.NewNop(), files[0], files[1], files[2]); err == nil {
			t.Errorf("%v is accepted", files)
		}
	}
	for i := range 3 {
		files := []string{ca, cert, key}
		files[i] = filepath.Join(folder, "missing")
		if _, err := Load(zap.NewNop(), files[0], files[1], files[2]); err == nil || !strings.Contains(err.Error(), files[i]) {
			t.Errorf("%v: %v", files, err)
		}
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(zap.NewNop(), ca, cert, key); err == nil || !strings.Contains(err.Error(), "mode 0640") {
		t.Errorf("a key that others can read: %v", err)
	}
	if _, err := Expiry(noise); err == nil {
		t.Error("noise has an expiry")
	}
}

func TestProbeFindsWhetherANodeAcceptsTheCertificate(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	issue(t, folder, "node")
	issue(t, other, "node")
	good, stranger := load(t, folder, "node"), load(t, other, "node")
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.HangGuard)
	defer cancel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2, server.TLS = true, good.Clone()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	address := server.Listener.Addr().String()
	if err := Probe(ctx, good, address); err != nil {
		t.Error(err)
	}
	stranger.VerifyConnection = nil // only the server refuses
	if err := Probe(ctx, stranger, address); err == nil || !strings.Contains(err.Error(), "did not accept") {
		t.Errorf("a client of another cluster: %v", err)
	}
	server.Close()
	if err := Probe(ctx, good, address); err == nil {
		t.Error("a node that does not run accepts a connection")
	}
}
