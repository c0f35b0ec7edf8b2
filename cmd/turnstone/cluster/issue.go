package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"turnstone/cmd/turnstone/settings"
)

const (
	caName     = "ca"
	caYears    = 10
	certSuffix = ".crt"
	keySuffix  = ".key"

	// clockError is how far the clock of another node may be behind the clock of this host computer, for a new certificate to
	// be valid there.
	clockError = time.Hour

	day        = 24 * time.Hour
	folderMode = 0o700
	keyMode    = 0o600
	certMode   = 0o644
)

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// Request describes a certificate for a node.
type Request struct {
	Folder string   // of the authority, and for the new files
	Node   string   // name of the files, and subject of the certificate
	Hosts  []string // further DNS names and IP addresses of the node; Name is always included
	Days   int      // of validity
}

// Issue creates a certificate and its key for a node, and before that the authority if the folder has none. It returns
// the paths of the files that it created. It never overwrites a file.
func Issue(r Request) (created []string, err error) {
	if !nodeName.MatchString(r.Node) || r.Node == caName {
		return nil, fmt.Errorf("invalid name of a node %q (want for example node-1)", r.Node)
	}
	if r.Days < 1 || r.Days > caYears*365 {
		return nil, fmt.Errorf("invalid validity of %d days (want 1 to %d)", r.Days, caYears*365)
	}
	if slices.Contains(r.Hosts, "") {
		return nil, errors.New("a host is empty")
	}
	if err := os.MkdirAll(r.Folder, folderMode); err != nil {
		return nil, fmt.Errorf("creating the folder of the certificates: %w", err)
	}
	for _, suffix := range []string{certSuffix, keySuffix} {
		path := filepath.Join(r.Folder, r.Node+suffix)
		there, err := exists(path)
		if there {
			err = fmt.Errorf("%s exists already, and no file is overwritten: choose another name or folder", path)
		}
		if err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			for _, path := range created {
				err = errors.Join(err, os.Remove(path))
			}
			created = nil
		}
	}()
	ca, created, err := openAuthority(r.Folder)
	if err != nil {
		return created, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: r.Node}, NotBefore: now.Add(-clockError), NotAfter: now.Add(time.Duration(r.Days) * day),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{Name}, BasicConstraintsValid: true,
	}
	if template.NotAfter.After(ca.certificate.NotAfter) {
		return created, fmt.Errorf("the authority ends on %s, before the certificate: use fewer days, or a new authority", ca.certificate.NotAfter.Format(time.DateOnly))
	}
	for _, host := range r.Hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return created, fmt.Errorf("creating a key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &key.PublicKey, ca.key)
	if err != nil {
		return created, fmt.Errorf("signing the certificate of a node: %w", err)
	}
	files, err := writePair(r.Folder, r.Node, der, key)
	return append(created, files...), err
}

// authority signs the certificates of nodes.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// openAuthority reads the authority of a folder, or creates it and returns the paths of its files.
func openAuthority(folder string) (a authority, created []string, err error) {
	cert, key := filepath.Join(folder, caName+certSuffix), filepath.Join(folder, caName+keySuffix)
	hasCert, err := exists(cert)
	if err != nil {
		return a, nil, fmt.Errorf("reading the authority: %w", err)
	}
	hasKey, err := exists(key)
	switch {
	case err != nil:
		return a, nil, fmt.Errorf("reading the authority: %w", err)
	case hasCert != hasKey:
		return a, nil, fmt.Errorf("the folder needs both %s and %s to sign a certificate, or neither to create an authority", cert, key)
	case !hasCert:
		return createAuthority(folder)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		return a, nil, fmt.Errorf("reading the authority: %w", err)
	}
	if a.certificate, err = parseCertificate(cert, text); err != nil {
		return a, nil, err
	}
	private, err := settings.ReadSecret(key)
	if err != nil {
		return a, nil, fmt.Errorf("reading the key of the authority: %w", err)
	}
	block, _ := pem.Decode([]byte(private))
	if block == nil {
		return a, nil, fmt.Errorf("%s contains no key (PEM)", key)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return a, nil, fmt.Errorf("%s: %w", key, err)
	}
	var isECDSA bool
	if a.key, isECDSA = parsed.(*ecdsa.PrivateKey); !isECDSA || !a.key.PublicKey.Equal(a.certificate.PublicKey) {
		return a, nil, fmt.Errorf("%s is not the key of %s", key, cert)
	}
	return a, nil, nil
}

func createAuthority(folder string) (a authority, created []string, err error) {
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return a, nil, fmt.Errorf("creating a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Turnstone cluster"}, NotBefore: now.Add(-clockError), NotAfter: now.AddDate(caYears, 0, 1),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return a, nil, fmt.Errorf("signing the authority: %w", err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return a, nil, fmt.Errorf("signing the authority: %w", err)
	}
	created, err = writePair(folder, caName, der, a.key)
	return a, created, err
}

// writePair writes a certificate and its key, and returns the paths of the files that it created, even if it fails.
func writePair(folder, name string, der []byte, key *ecdsa.PrivateKey) (created []string, err error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	for _, file := range []struct {
		suffix, kind string
		bytes        []byte
		mode         os.FileMode
	}{{keySuffix, "PRIVATE KEY", private, keyMode}, {certSuffix, "CERTIFICATE", der, certMode}} {
		path := filepath.Join(folder, name+file.suffix)
		to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, file.mode)
		if err != nil {
			return created, fmt.Errorf("creating a certificate: %w", err)
		}
		created = append(created, path)
		if err := errors.Join(pem.Encode(to, &pem.Block{Type: file.kind, Bytes: file.bytes}), to.Close()); err != nil {
			return created, fmt.Errorf("creating a certificate: %w", err)
		}
	}
	return created, nil
}
