package http

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"turnstone/http/route"
	"turnstone/protocol"
)

func TestLongResponsesAreCompressedForClientsThatAcceptIt(t *testing.T) {
	u := newWorld(t).client().register("ada@example.org")
	var project protocol.Project
	u.expect(201, "POST", "/projects", route.Object{"name": "Tides"}).into(t, &project)
	path := "/projects/" + project.ProjectID.String() + "/instructions"
	u.expect(200, "PUT", path, route.Object{"content": strings.Repeat("Name the tide. ", 500), "version": 0})
	plain := u.expect(200, "GET", path, nil)
	for _, c := range []struct {
		method, path, accepted string
		compressed             bool
	}{
		{"GET", path, "gzip, deflate, br, zstd", true},
		{"GET", path, "br;q=1.0, gzip;q=0.5", true},
		{"GET", path, "GZIP", true},
		{"GET", path, "br", false},
		{"GET", path, "gzip;q=0", false},
		{"GET", "/auth/session", "gzip", false}, // it is short, and has a secret
		{"GET", "/projects/proj_00000000000000000000000001", "gzip", false},
		{"HEAD", path, "gzip", false},
	} {
		got := u.do(c.method, c.path, nil, "Accept-Encoding", c.accepted)
		if encoding := got.header.Get("Content-Encoding"); (encoding == "gzip") != c.compressed {
			t.Errorf("%s %s, %s: encoding %q", c.method, c.path, c.accepted, encoding)
		}
		if got.status == 200 && c.method == "GET" && !slices.Contains(got.header.Values("Vary"), "Accept-Encoding") {
			t.Errorf("%s %s, %s: Vary %q", c.method, c.path, c.accepted, got.header.Values("Vary"))
		}
		if !c.compressed || got.header.Get("Content-Encoding") == "" {
			continue
		}
		if len(got.body) > len(plain.body)/10 {
			t.Errorf("%d of %d bytes are left", len(got.body), len(plain.body))
		}
		reader, err := gzip.NewReader(bytes.NewReader(got.body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(reader); err != nil || !bytes.Equal(body, plain.body) {
			t.Errorf("%v: %.100s", err, body)
		}
	}
}
