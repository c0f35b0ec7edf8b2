// Package markdown converts Markdown that models and users have written: to HTML for pages of the service, and to files that are
// downloaded. What it returns loads nothing, runs nothing, and links only to addresses on the web and of mail.
package markdown

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The texts are untrusted, and the page of a share has the origin of the service. Three layers keep them
// harmless: the renderer writes no HTML of a text and loads nothing, the sanitizer admits a list of elements, and the
// content security policy of the page forbids scripts and everything that would be loaded.

// Markdown that exceeds a limit is shown as plain text. The parser takes quadratic time for nested containers and for
// brackets that are not closed, and fills the rows of a table up to the number of its columns. See also Budget.
const (
	maxMarkdown = 64 << 10
	maxMarks    = 2000 // of [ and of <, each
	maxOpen     = 200  // brackets that are open at the same time
	maxCells    = 20_000
	maxNesting  = 32
)

var (
	converter = goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(meter{}, 0))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))),
	)
	sanitizer = newSanitizer()
)

func newSanitizer() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^host$`)).OnElements("span")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true) // and noopener
	return p
}

// Render returns the HTML of Markdown. Text that exceeds a limit or the rest of the budget is plain.
func Render(b *Budget, source string) template.HTML {
	if b.over || !renderable(source) {
		return plainText(source)
	}
	out, ok := b.convert([]byte(source))
	if !ok {
		return plainText(source)
	}
	return template.HTML(sanitizer.SanitizeBytes(out)) //nolint:gosec // it is sanitized
}

func plainText(source string) template.HTML {
	return template.HTML(`<p class="plain">` + template.HTMLEscapeString(source) + `</p>`) //nolint:gosec // it is escaped
}

// renderable reports whether Markdown is within the limits.
func renderable(source string) bool {
	return len(source) <= maxMarkdown && strings.Count(source, "[") <= maxMarks && strings.Count(source, "<") <= maxMarks && flat(source)
}

// flat reports whether nothing in Markdown takes the parser quadratic time, whatever its length.
func flat(source string) bool {
	rows, columns, open := 0, 0, 0 // of the lines since the last blank one; the first two if they are a table
	for line := range strings.Lines(source) {
		if strings.TrimSpace(line) == "" {
			rows, columns, open = 0, 0, 0
			continue
		}
		if open = opened(line, open); open > maxOpen {
			return false
		}
		rows, columns = rows+1, max(columns, strings.Count(line, "|"))
		if rows*columns > maxCells || nesting(line) > maxNesting {
			return false
		}
	}
	return true
}

// opened returns how many brackets are open after a line, or more than maxOpen if so many are open within it. Whether one is
// escaped or in code does not matter: this is a limit.
func opened(line string, before int) int {
	for i := 0; i < len(line) && before <= maxOpen; i++ {
		switch line[i] {
		case '[':
			before++
		case ']':
			before = max(0, before-1)
		}
	}
	return before
}

// nesting counts the marks of quotes and lists at the start of a line.
func nesting(line string) (marks int) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c >= '0' && c <= '9':
		case c == '>' || strings.IndexByte("-*+.)", c) >= 0 && i+1 < len(line) && strings.IndexByte(" \t\n", line[i+1]) >= 0:
			marks++
		default:
			return marks
		}
	}
	return marks
}

// nodes renders the nodes of Markdown whose HTML differs from the usual one: links show their host, images are links, and
// HTML is text. The headings of a message are below those of the page.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, renderHeading)
	reg.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		return renderLink(w, n.(*ast.Link).Destination, entering) //nolint:forcetypeassert // the kind determines the type
	})
	reg.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		return renderLink(w, n.(*ast.Image).Destination, entering) //nolint:forcetypeassert // the kind determines the type
	})
	reg.Register(ast.KindAutoLink, renderAutoLink)
	reg.Register(ast.KindHTMLBlock, renderHTMLBlock)
	reg.Register(ast.KindRawHTML, renderRawHTML)
}

const (
	headingsOfPage = 2
	maxHeading     = 6
)

func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := min(n.(*ast.Heading).Level+headingsOfPage, maxHeading) //nolint:forcetypeassert // the kind determines the type
	if entering {
		_, err := fmt.Fprintf(w, "<h%d>", level)
		return ast.WalkContinue, err
	}
	_, err := fmt.Fprintf(w, "</h%d>\n", level)
	return ast.WalkContinue, err
}

// renderLink renders the text of a link with the host of its target. A target that is not an address on the web or of mail
// is left out.
func renderLink(w util.BufWriter, destination []byte, entering bool) (ast.WalkStatus, error) {
	target := linkTarget(string(util.UnescapePunctuations(destination)))
	if target == nil {
		return ast.WalkContinue, nil
	}
	if entering {
		_, err := w.WriteString(`<a href="` + template.HTMLEscapeString(target.String()) + `">`)
		return ast.WalkContinue, err
	}
	shown := target.Host
	if shown == "" {
		shown = target.Opaque
	}
	_, err := w.WriteString(`</a> <span class="host">(` + template.HTMLEscapeString(shown) + `)</span>`)
	return ast.WalkContinue, err
}

// linkTarget returns the target of a link that readers may follow; nil: none.
func linkTarget(destination string) *url.URL {
	target, err := url.Parse(destination)
	if err != nil {
		return nil
	}
	switch target.Scheme {
	case "http", "https":
		if target.Host != "" && target.User == nil {
			return target
		}
	case "mailto":
		if target.Opaque != "" {
			return target
		}
	}
	return nil
}

func renderAutoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	link := n.(*ast.AutoLink) //nolint:forcetypeassert // the kind determines the type
	address, label := string(link.URL(source)), template.HTMLEscapeString(string(link.Label(source)))
	if link.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(address, "mailto:") {
		address = "mailto:" + address
	}
	if target := linkTarget(address); target != nil {
		label = `<a href="` + template.HTMLEscapeString(target.String()) + `">` + label + `</a>`
	}
	_, err := w.WriteString(label)
	return ast.WalkContinue, err
}

func renderHTMLBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block := n.(*ast.HTMLBlock) //nolint:forcetypeassert // the kind determines the type
	if entering {
		_, err := w.WriteString("<p>" + escapeSegments(source, block.Lines()))
		return ast.WalkContinue, err
	}
	end := ""
	if block.HasClosure() {
		end = template.HTMLEscapeString(string(block.ClosureLine.Value(source)))
	}
	_, err := w.WriteString(end + "</p>\n")
	return ast.WalkContinue, err
}

func renderRawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, err := w.WriteString(escapeSegments(source, n.(*ast.RawHTML).Segments)) //nolint:forcetypeassert // the kind determines the type
		return ast.WalkSkipChildren, err
	}
	return ast.WalkContinue, nil
}

func escapeSegments(source []byte, segments *text.Segments) string {
	var escaped strings.Builder
	for i := range segments.Len() {
		segment := segments.At(i)
		escaped.WriteString(template.HTMLEscapeString(string(segment.Value(source))))
	}
	return escaped.String()
}
