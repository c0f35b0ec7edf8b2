// Package manual serves the documentation origin: the pages of the folder docs as HTML, and the published documents. It
// needs no session, sets no cookies and has no data of accounts. The pages are part of the program, so they are not sanitized;
// the policy lets them load nothing but the style sheet.
package manual

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the style sheet and the frame of a page
	"fmt"
	"html/template"
	"io/fs"
	stdhttp "net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"turnstone/http/response"
	"turnstone/protocol"
)

// A Document returns the content of a published JSON document.
type Document func() ([]byte, error)

const policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed style.css
var style []byte

//go:embed page.html
var frame string

var page = template.Must(template.New("page").Parse(frame))

// New returns the handler of the documentation origin. Each page (x.md) has the address /x, and / lists them. A page is
// rendered when it is first requested.
func New(pages fs.FS, documents map[string]Document) (stdhttp.Handler, error) {
	mux := stdhttp.NewServeMux()
	list, err := readPages(pages)
	if err != nil {
		return nil, fmt.Errorf("reading the pages of the documentation: %w", err)
	}
	for address, one := range list {
		mux.HandleFunc("GET "+address, serve("text/html; charset=utf-8", sync.OnceValues(func() ([]byte, error) { return render(list, one) })))
	}
	mux.HandleFunc("GET /{$}", serve("text/html; charset=utf-8", sync.OnceValues(func() ([]byte, error) { return index(list) })))
	mux.HandleFunc("GET /style.css", serve("text/css; charset=utf-8", func() ([]byte, error) { return style, nil }))
	for address, document := range documents {
		mux.HandleFunc("GET "+address, ServeDocument(document))
	}
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		switch _, pattern := mux.Handler(r); {
		case r.Method != stdhttp.MethodGet && r.Method != stdhttp.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			response.Refuse(w, protocol.Errorf(protocol.CodeMethodNotAllowed, "Only GET and HEAD are supported."))
		case pattern == "":
			response.Refuse(w, &protocol.Error{Code: protocol.CodeNotFound})
		default:
			mux.ServeHTTP(w, r)
		}
	}), nil
}

// ServeDocument returns the handler of a published JSON document.
func ServeDocument(document Document) stdhttp.HandlerFunc { return serve("application/json", document) }

// serve returns the handler of a content. ServeContent answers HEAD and conditional requests.
func serve(media string, content func() ([]byte, error)) stdhttp.HandlerFunc {
	return func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		text, err := content()
		if err != nil {
			response.Refuse(w, fmt.Errorf("generating the document: %w", err))
			return
		}
		w.Header().Set("Content-Type", media)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(text)))
		stdhttp.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}
}

// source is a page as Markdown.
type source struct {
	Address, Title string
	folder         string
	text           []byte
}

// readPages returns the pages by their addresses.
func readPages(pages fs.FS) (map[string]source, error) {
	list := map[string]source{}
	err := fs.WalkDir(pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(pages, name)
		title, _, _ := strings.Cut(string(content), "\n")
		address := "/" + strings.TrimSuffix(name, ".md")
		list[address] = source{address, strings.TrimPrefix(title, "# "), path.Dir("/" + name), content}
		return err
	})
	return list, err
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Linkify), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// render returns the HTML of a page.
func render(list map[string]source, from source) ([]byte, error) {
	tree := markdown.Parser().Parse(text.NewReader(from.text))
	if err := resolveLinks(tree, list, from.folder); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, from.text, tree); err != nil {
		return nil, err
	}
	return fill(from.Title, body.String(), nil)
}

// resolveLinks lets links lead to the addresses of pages. A link to another file of the repository becomes its text.
func resolveLinks(tree ast.Node, list map[string]source, folder string) error {
	var outside []*ast.Link
	err := ast.Walk(tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		link, is := node.(*ast.Link)
		if !is || !entering {
			return ast.WalkContinue, nil
		}
		to, fragment, _ := strings.Cut(string(link.Destination), "#")
		if to == "" || strings.Contains(to, "://") {
			return ast.WalkContinue, nil
		}
		to = path.Join(folder, strings.TrimSuffix(to, ".md"))
		if _, found := list[to]; !found {
			outside = append(outside, link)
			return ast.WalkContinue, nil
		}
		if fragment != "" {
			to += "#" + fragment
		}
		link.Destination = []byte(to)
		return ast.WalkContinue, nil
	})
	for _, link := range outside {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			parent.InsertBefore(parent, link, child)
		}
		parent.RemoveChild(parent, link)
	}
	return err
}

// index returns the list of all pages.
func index(list map[string]source) ([]byte, error) {
	return fill("Documentation of Turnstone", "", list)
}

func fill(title, body string, list map[string]source) ([]byte, error) {
	var out bytes.Buffer
	err := page.Execute(&out, struct {
		Title string
		Body  template.HTML
		Pages map[string]source
	}{title, template.HTML(body), list}) // it is a page of the program
	return out.Bytes(), err
}
