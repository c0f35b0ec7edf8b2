// Package markdown converts Markdown that models and users have written: to HTML for pages of the service, and to files that are
// downloaded. What it returns loads nothing, runs nothing, and links only to addresses on the web and of mail.
package markdown

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// The texts are untrusted, and the page of a share has the origin of the service. Three layers keep them
// harmless: the renderer writes no HTML of a text except a few elements without attributes, and loads nothing, the sanitizer admits a list of elements, and the
// content security policy of the page forbids every script but that of the page, and everything that would be loaded.

// Markdown that exceeds a limit is shown as plain text. The parser takes quadratic time for nested containers and for
// brackets that are not closed, and fills the rows of a table up to the number of its columns. See also Budget.
const (
	maxMarkdown = 64 << 10
	maxMarks    = 2000   // of [ and of <, each
	maxOpen     = 200    // brackets that are open at the same time
	maxCells    = 20_000 // of a table, and further ones with which the rows of all tables are filled up
	maxNesting  = 32
	maxAddress  = 8192 // bytes of the target of a link, which may be used often
)

var (
	// common is what files in Word's format have, too.
	common    = []goldmark.Extender{extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), strikethrough{}, extension.Linkify}
	metered   = goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(meter{}, 0)))
	forWord   = goldmark.New(goldmark.WithExtensions(common...), metered)
	converter = goldmark.New(goldmark.WithExtensions(append(slices.Clone(common),
		extension.TaskList, extension.NewFootnote(extension.WithFootnoteIDPrefixFunction(prefixOf)), extensions{})...), metered)
	sanitizer = newSanitizer()
)

func newSanitizer() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del",
		"table", "thead", "tbody", "tr", "th", "td", "div", "figure", "figcaption", "kbd", "sub", "sup", "mark", "details", "summary", "span")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(?:host|task|keyword|string|constant|comment|function|added|removed)$`)).OnElements("span")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^alert [a-z]+$`)).OnElements("blockquote")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^title$`)).OnElements("p")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(?:table|footnotes)$`)).OnElements("div")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre", "div")
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^text\d+-fn(?:ref\d*)?:\d+$`)).OnElements("sup", "li")
	p.AllowAttrs("href").OnElements("a")
	p.AllowRelativeURLs(true) // the addresses of footnotes: of the others, linkTarget lets only absolute ones through
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
	out, ok := b.convert(source)
	if !ok {
		return plainText(source)
	}
	return out
}

func plainText(source string) template.HTML {
	return template.HTML(`<p class="plain">` + template.HTMLEscapeString(source) + `</p>`) // it is escaped
}

// renderable reports whether Markdown is within the limits.
func renderable(source string) bool {
	return len(source) <= maxMarkdown && strings.Count(source, "[") <= maxMarks && strings.Count(source, "<") <= maxMarks && flat(source)
}

// flat reports whether nothing in Markdown takes the parser quadratic time, whatever its length.
func flat(source string) bool {
	rows, columns, open := 0, 0, 0 // of the lines since the last blank one; the first two if they are a table
	written, filled := 0, 0        // cells: in these lines, and by all tables before them
	for line := range strings.Lines(source) {
		if strings.TrimSpace(line) == "" {
			filled += max(0, rows*columns-written)
			rows, columns, open, written = 0, 0, 0, 0
			continue
		}
		cells := strings.Count(line, "|")
		written += cells
		if open = opened(line, open); open > maxOpen {
			return false
		}
		rows, columns = rows+1, max(columns, cells)
		if rows*columns > maxCells || filled+rows*columns-written > maxCells || nesting(line) > maxNesting {
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
// HTML is text except for safe elements. The headings of a message are below those of the page.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, renderHeading)
	reg.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		return renderLink(w, n, n.(*ast.Link).Destination, entering) // the kind determines the type
	})
	reg.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		return renderLink(w, n, n.(*ast.Image).Destination, entering) // the kind determines the type
	})
	reg.Register(ast.KindAutoLink, renderAutoLink)
	reg.Register(ast.KindHTMLBlock, renderHTMLBlock)
	reg.Register(ast.KindRawHTML, renderRawHTML)
	reg.Register(ast.KindBlockquote, renderBlockquote)
	reg.Register(ast.KindCodeBlock, renderCodeBlock)
	reg.Register(ast.KindFencedCodeBlock, renderCodeBlock)
	reg.Register(ast.KindCodeSpan, renderCodeSpan)
	reg.Register(extast.KindTable, renderTable)
	reg.Register(extast.KindTaskCheckBox, renderTask)
	reg.Register(kindHighlighted, renderHighlighted)
}

const (
	headingsOfPage = 2
	maxHeading     = 6
)

func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := min(n.(*ast.Heading).Level+headingsOfPage, maxHeading) // the kind determines the type
	if entering {
		_, err := fmt.Fprintf(w, "<h%d>", level)
		return ast.WalkContinue, err
	}
	_, err := fmt.Fprintf(w, "</h%d>\n", level)
	return ast.WalkContinue, err
}

// renderLink renders the text of a link with the host of its target. A target that is not an address on the web or of mail
// is left out.
func renderLink(w util.BufWriter, n ast.Node, destination []byte, entering bool) (ast.WalkStatus, error) {
	target := targetOf(destination, formulasOf(n))
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

// targetOf is linkTarget for a destination as it is written in Markdown.
func targetOf(destination []byte, formulas []formula) *url.URL {
	if len(destination) > maxAddress {
		return nil
	}
	return linkTarget(restoreSource(unescaped(destination), formulas))
}

// unescaped returns a text as it is shown.
func unescaped(text []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(text))))
}

// linkTarget returns the target of a link that readers may follow; nil: none.
func linkTarget(destination string) *url.URL {
	if len(destination) > maxAddress || strings.ContainsAny(destination, placeholderStart+placeholderEnd) {
		return nil
	}
	target, err := url.Parse(destination)
	if err != nil || strings.ContainsAny(target.Host+target.Opaque, placeholderStart+placeholderEnd) {
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
	link := n.(*ast.AutoLink) // the kind determines the type
	formulas := formulasOf(n)
	address, label := restoreSource(string(link.URL(source)), formulas), template.HTMLEscapeString(restoreSource(string(link.Label(source)), formulas))
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
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.HTMLBlock) // the kind determines the type
	written := string(block.Lines().Value(source))
	if block.HasClosure() {
		written += string(block.ClosureLine.Value(source))
	}
	b, _ := n.OwnerDocument().Meta()[metaBudget].(*Budget)
	html, rest := "", written
	for b != nil {
		at := summary.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		html += escapeUnsafe(restoreSource(rest[:at[2]], formulasOf(n))) + b.inline(rest[at[2]:at[3]], n.OwnerDocument().Meta())
		rest = rest[at[3]:]
	}
	html += escapeUnsafe(restoreSource(rest, formulasOf(n)))
	if !detailsTag.MatchString(written) {
		html = "<p>" + html + "</p>\n"
	}
	_, err := w.WriteString(html)
	return ast.WalkContinue, err
}

func renderRawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var written strings.Builder
	segments := n.(*ast.RawHTML).Segments // the kind determines the type
	for i := range segments.Len() {
		segment := segments.At(i)
		written.Write(segment.Value(source))
	}
	_, err := w.WriteString(escapeUnsafe(restoreSource(written.String(), formulasOf(n))))
	return ast.WalkSkipChildren, err
}

// inline returns the HTML of Markdown within a line, which is part of a document with this metadata.
func (b *Budget) inline(source string, meta map[string]any) string {
	source = strings.TrimSpace(source)
	root := b.parse(converter, []byte(source))
	if root == nil || root.ChildCount() != 1 || root.FirstChild().Kind() != ast.KindParagraph {
		return escapeUnsafe(source)
	}
	root.OwnerDocument().SetMeta(meta)
	out := &page{budget: b}
	if err := converter.Renderer().Render(out, []byte(source), root); err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(out.html.String(), "<p>"), "</p>\n")
}

// The keys of a document's metadata.
const (
	metaFormulas = "formulas"
	metaNumber   = "number"
	metaBudget   = "budget"
)

// prefixOf returns what the identifiers of a text's footnotes start with: a page has many texts.
func prefixOf(n ast.Node) []byte {
	number, _ := n.OwnerDocument().Meta()[metaNumber].(int)
	return []byte("text" + strconv.Itoa(number) + "-")
}
