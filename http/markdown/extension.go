package markdown

import (
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Alerts are the kinds of alerts, in quotes that start with [!NOTE] and so on, with their titles.
var Alerts = map[string]string{"note": "Note", "tip": "Tip", "important": "Important", "warning": "Warning", "caution": "Caution"}

var (
	alertMark = regexp.MustCompile(`^\s*\[!([A-Za-z]+)\]\s*$`)
	// safeTag are the elements of HTML that may be in a text, without attributes.
	safeTag = regexp.MustCompile(`(?i)</?(?:kbd|sub|sup|mark|details|summary)>|<br ?/?>`)
	summary = regexp.MustCompile(`(?is)<summary>(.*?)</summary>`)
	// detailsTag starts HTML that contains blocks, and is no paragraph.
	detailsTag = regexp.MustCompile(`(?i)^\s*</?(?:details|summary)>`)
)

// alerts marks the quotes that are alerts, and removes the lines that say so.
type alerts struct{}

// Transform implements parser.ASTTransformer.
func (alerts) Transform(root *ast.Document, reader text.Reader, _ parser.Context) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && n.Kind() == ast.KindBlockquote {
			markAlert(n, reader.Source())
		}
		if n.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
}

func markAlert(quote ast.Node, source []byte) {
	paragraph, isParagraph := quote.FirstChild().(*ast.Paragraph)
	if !isParagraph || paragraph.Lines().Len() == 0 {
		return
	}
	first := paragraph.Lines().At(0)
	found := alertMark.FindSubmatch(first.Value(source))
	if found == nil {
		return
	}
	kind := strings.ToLower(string(found[1]))
	if Alerts[kind] == "" {
		return
	}
	for child := paragraph.FirstChild(); child != nil; {
		next := child.NextSibling()
		written, isText := child.(*ast.Text)
		if !isText || written.Segment.Start >= first.Stop {
			break
		}
		paragraph.RemoveChild(paragraph, child)
		child = next
	}
	if paragraph.FirstChild() == nil {
		quote.RemoveChild(quote, paragraph)
	}
	quote.SetAttributeString("alert", kind)
}

// unused numbers the footnotes that the text does not refer to, which would otherwise be left out.
type unused struct{}

// Transform implements parser.ASTTransformer.
func (unused) Transform(root *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		list, isList := n.(*extast.FootnoteList)
		if !isList || !entering {
			return ast.WalkContinue, nil
		}
		for child := list.FirstChild(); child != nil; child = child.NextSibling() {
			if note, isNote := child.(*extast.Footnote); isNote && note.Index < 0 {
				list.Count++
				note.Index = list.Count
			}
		}
		return ast.WalkStop, nil
	})
}

// metaTitles is the key of a document's metadata under which the titles of its alerts are.
const metaTitles = "alerts"

func renderBlockquote(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</blockquote>\n")
		return ast.WalkContinue, err
	}
	start := "<blockquote>\n"
	if value, found := n.AttributeString("alert"); found {
		kind := value.(string) // markAlert has set it
		title := Alerts[kind]
		if titles, _ := n.OwnerDocument().Meta()[metaTitles].(map[string]string); titles[kind] != "" {
			title = titles[kind]
		}
		start = `<blockquote class="alert ` + kind + `">` + "\n" + `<p class="title">` + template.HTMLEscapeString(title) + "</p>\n"
	}
	_, err := w.WriteString(start)
	return ast.WalkContinue, err
}

// highlighted is text between two equals signs on each side.
type highlighted struct{ ast.BaseInline }

var kindHighlighted = ast.NewNodeKind("Highlighted")

// Kind implements ast.Node.
func (*highlighted) Kind() ast.NodeKind { return kindHighlighted }

// Dump implements ast.Node.
func (n *highlighted) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// doubled parses text between two of the same mark on each side: between equals signs it is highlighted, between tildes it is
// struck through. One tilde often means "about".
type doubled byte

// IsDelimiter implements parser.DelimiterProcessor.
func (d doubled) IsDelimiter(b byte) bool { return b == byte(d) }

// CanOpenCloser implements parser.DelimiterProcessor.
func (doubled) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor.
func (d doubled) OnMatch(int) ast.Node {
	if d == '~' {
		return extast.NewStrikethrough()
	}
	return &highlighted{}
}

// Trigger implements parser.InlineParser.
func (d doubled) Trigger() []byte { return []byte{byte(d)} }

// Parse implements parser.InlineParser.
func (d doubled) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	if before == rune(d) { // within a longer run, which is not read again
		return nil
	}
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 2, d)
	if node == nil || node.OriginalLength != 2 {
		return nil
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}

func renderHighlighted(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "</mark>"
	if entering {
		tag = "<mark>"
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}

func renderTask(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	box := "☐"
	if n.(*extast.TaskCheckBox).IsChecked { // the kind determines the type
		box = "☑"
	}
	if !entering {
		return ast.WalkContinue, nil
	}
	_, err := w.WriteString(`<span class="task">` + box + `</span> `)
	return ast.WalkContinue, err
}

// renderTable puts a table into an element that scrolls.
func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tags := "</table>\n</div>\n"
	if entering {
		tags = `<div class="table" tabindex="0">` + "\n<table>\n"
	}
	_, err := w.WriteString(tags)
	return ast.WalkContinue, err
}

func renderCodeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fence, isFenced := n.(*ast.FencedCodeBlock); isFenced {
		language = string(fence.Language(source))
	}
	code := restoreSource(string(n.Lines().Value(source)), formulasOf(n))
	html := `<pre tabindex="0"><code>` + string(highlight(code, language)) + "</code></pre>"
	if language != "" {
		html = "<figure><figcaption>" + template.HTMLEscapeString(language) + "</figcaption>" + html + "</figure>"
	}
	_, err := w.WriteString(html + "\n")
	return ast.WalkSkipChildren, err
}

func renderCodeSpan(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var code strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if written, isText := child.(*ast.Text); isText {
			code.Write(written.Segment.Value(source))
		}
	}
	shown := restoreSource(strings.ReplaceAll(code.String(), "\n", " "), formulasOf(n))
	_, err := w.WriteString("<code>" + template.HTMLEscapeString(shown) + "</code>")
	return ast.WalkSkipChildren, err
}

// escapeUnsafe escapes HTML except elements that are safe.
func escapeUnsafe(written string) string {
	var out strings.Builder
	for written != "" {
		at := safeTag.FindStringIndex(written)
		if at == nil {
			break
		}
		out.WriteString(template.HTMLEscapeString(written[:at[0]]) + strings.ToLower(written[at[0]:at[1]]))
		written = written[at[1]:]
	}
	return out.String() + template.HTMLEscapeString(written)
}

// strikethrough is text between two tildes on each side.
type strikethrough struct{}

// Extend implements goldmark.Extender.
func (strikethrough) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(parser.WithInlineParsers(util.Prioritized(doubled('~'), 500)))
	m.Renderer().AddOptions(renderer.WithNodeRenderers(util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500)))
}

// extensions are the syntax that the service adds to GitHub Flavored Markdown.
type extensions struct{}

// Extend implements goldmark.Extender.
func (extensions) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(
		parser.WithInlineParsers(util.Prioritized(doubled('='), 500)),
		parser.WithASTTransformers(util.Prioritized(alerts{}, 500), util.Prioritized(unused{}, 500)),
	)
	m.Renderer().AddOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1)))
}
