package operate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
)

const (
	bundleFolder  = "turnstone-support"
	bundleMode    = 0o600
	partTimeout   = 10 * time.Second
	maxPart       = 16 << 20 // bytes: far more than the largest part, /metrics, has
	hiddenSecret  = "[secret]"
	minHiddenText = 4 // shorter secrets occur by chance in any text
)

// Bundle is what the caller knows and the bundle contains.
type Bundle struct {
	Version  string           // as `turnstone version` prints it
	Findings []byte           // output of the doctor
	Config   *settings.Config // nil: it could not be loaded
}

// part is one file of a bundle.
type part struct {
	name  string
	write func(ctx context.Context, to io.Writer) error
}

// WriteBundle writes a support bundle (.tar.gz) to a new file. A part that cannot be collected is listed in contents.txt
// with the reason, and does not fail the bundle. No part has content of users, and configured secrets are replaced in all
// of them.
func (p *Program) WriteBundle(ctx context.Context, path string, b *Bundle) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, bundleMode)
	if err != nil {
		return fmt.Errorf("creating the support bundle: %w", err)
	}
	compressed := gzip.NewWriter(file)
	archive := tar.NewWriter(compressed)
	err = p.writeParts(ctx, archive, b)
	if err = errors.Join(err, archive.Close(), compressed.Close(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the support bundle: %w", err), os.Remove(path))
	}
	return nil
}

func (p *Program) writeParts(ctx context.Context, to *tar.Writer, b *Bundle) error {
	hide := p.hideSecrets(b.Config)
	now := time.Now()
	contents := &strings.Builder{}
	fmt.Fprintf(contents, "Support bundle of %s, without secrets and without content of users.\n\n", now.UTC().Format(time.RFC3339))
	add := func(name string, text []byte) error {
		text = []byte(hide.Replace(string(text)))
		header := &tar.Header{Name: bundleFolder + "/" + name, Mode: bundleMode, Size: int64(len(text)), ModTime: now, Format: tar.FormatPAX}
		if err := to.WriteHeader(header); err != nil {
			return err
		}
		_, err := to.Write(text)
		return err
	}
	for _, one := range p.parts(b) {
		text := &bytes.Buffer{}
		partCtx, cancel := context.WithTimeout(ctx, partTimeout)
		err := one.write(partCtx, text)
		cancel()
		if err != nil {
			fmt.Fprintf(contents, "%s is missing: %v\n", one.name, err)
			continue
		}
		fmt.Fprintln(contents, one.name)
		if err := add(one.name, text.Bytes()); err != nil {
			return err
		}
	}
	return add("contents.txt", []byte(contents.String()))
}

func (p *Program) parts(b *Bundle) []part {
	list := []part{
		{"version.txt", func(_ context.Context, to io.Writer) error { _, err := io.WriteString(to, b.Version); return err }},
		{"doctor.txt", func(_ context.Context, to io.Writer) error { _, err := to.Write(b.Findings); return err }},
	}
	if b.Config == nil {
		return list
	}
	return append(
		list,
		part{"config.txt", func(_ context.Context, to io.Writer) error { return settings.Print(to, b.Config) }},
		part{"nodes.json", p.internalPart("/admin/nodes")},
		part{"metrics.txt", p.internalPart("/metrics")},
		part{"goroutines.txt", p.internalPart("/debug/pprof/goroutine?debug=1")},
		part{"postgres.json", p.inspectDatabase},
	)
}

// internalPart returns a part that the running service provides.
func (p *Program) internalPart(path string) func(context.Context, io.Writer) error {
	return func(ctx context.Context, to io.Writer) error {
		response, err := p.request(ctx, http.MethodGet, path)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		_, err = io.Copy(to, io.LimitReader(response.Body, maxPart))
		return err
	}
}

func (p *Program) inspectDatabase(ctx context.Context, to io.Writer) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		found, err := db.Inspect(ctx)
		if err != nil {
			return err
		}
		indented := json.NewEncoder(to)
		indented.SetIndent("", "  ")
		return indented.Encode(found)
	})
}

// hideSecrets returns the replacer of configured secrets. The parts contain none by themselves; it covers messages of
// other programs, for example of a proxy in front of the model provider.
func (p *Program) hideSecrets(config *settings.Config) *strings.Replacer {
	values := []string{p.Environment["AWS_SECRET_ACCESS_KEY"], p.Environment["AWS_SESSION_TOKEN"]}
	if config != nil {
		values = append(values, config.SecretValues()...)
		if secret, err := config.SigningSecret(); err == nil {
			values = append(values, string(secret))
		}
	}
	var pairs []string
	for _, value := range values {
		if len(value) >= minHiddenText {
			pairs = append(pairs, value, hiddenSecret)
		}
	}
	return strings.NewReplacer(pairs...)
}
