package shares

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io/fs"
	"strings"
	"time"

	"turnstone/protocol"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	// pageScript shows times in the reader's time zone and adds buttons that copy code; the page is complete without it. It has no
	// comments, which the template would remove: the policy names its hash.
	//go:embed page.js
	pageScript string

	pageFunctions = template.FuncMap{
		"date": func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") },
		"iso":  func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"size": protocol.SizeText,
	}
)

// layout is the template of the page with its style and its script, and the policy that lets the page use these, the typeface
// of the app, and nothing else: no other script, no image, no frame, no form.
type layout struct {
	template *template.Template
	policy   string
}

// newLayout returns the layout with the typeface of the built app; nil: the app is not built, and the typeface is that of the
// system.
func newLayout(app fs.FS) *layout {
	style := fontFace(app) + pageCSS
	return &layout{
		template: template.Must(template.New("share").Funcs(pageFunctions).Parse(strings.NewReplacer("__style__", style, "__script__", pageScript).Replace(pageHTML))),
		policy: "default-src 'none'; style-src 'sha256-" + hashOfElement(style) + "'; script-src 'sha256-" + hashOfElement(pageScript) +
			"'; font-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// hashOfElement returns the hash of the content of an element.
func hashOfElement(content string) string {
	hash := sha256.Sum256([]byte(content))
	return base64.StdEncoding.EncodeToString(hash[:])
}

// fontFace returns the rule for the typeface of the app.
func fontFace(app fs.FS) string {
	if app == nil {
		return ""
	}
	names, err := fs.Glob(app, "assets/atkinson-hyperlegible-next-latin-wght-normal-*.woff2")
	if err != nil || len(names) == 0 {
		return ""
	}
	return `@font-face { font-family: "Atkinson"; font-weight: 200 800; font-display: swap; src: url("/` + names[0] + `") format("woff2"); }` + "\n"
}
