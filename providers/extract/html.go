package extract

import (
	"io"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"

	"turnstone/protocol"
	webpage "turnstone/providers/web/page"
)

// readHTML reads a page as Markdown, without scripts, styles and embedded objects.
func readHTML(t *text, c content) error {
	raw, err := io.ReadAll(io.LimitReader(c.reader(), maxMarkup))
	if err != nil {
		return err
	}
	t.truncated = c.size > maxMarkup
	markdown, _ := t.markdownOf(t.decode(raw, true))
	return t.joined(markdown)
}

// markdownOf returns the text of a page as Markdown, and its title or first heading. It notes what is hidden, and a page of
// which only the words can be read, because its elements are nested too deeply.
func (t *text) markdownOf(markup string) (markdown, title string) {
	page, err := html.Parse(strings.NewReader(markup)) // accepts everything but deep nesting
	if err == nil {
		s := stripper{hasStyles: hasStyles(page)}
		s.strip(page)
		if heading := find(page, "h1", "h2", "title"); heading != nil {
			title = webpage.TextOf(heading)
		}
		to := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
		var out []byte
		if out, err = to.ConvertNode(page); err == nil {
			if s.hidden > 0 {
				t.note(protocol.NoteHidden, s.hidden)
			}
			return string(out), title
		}
	}
	t.note(protocol.NotePlain, 1)
	return wordsOf(markup), title
}

// unread are the elements that have no text for a reader.
var unread = []string{"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "math", "canvas"}

// inline are the elements that do not end a line.
var inline = []string{
	"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp",
	"small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}

// wordsOf returns the words of markup, a line for each block, from its tokens: these need no tree.
func wordsOf(markup string) string {
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(markup))
	skipped := ""
	for {
		switch tokens.Next() {
		case html.ErrorToken: // also the end
			return strings.ReplaceAll(b.String(), " \n", "\n")
		case html.TextToken:
			if words := strings.Join(strings.Fields(string(tokens.Text())), " "); skipped == "" && words != "" {
				b.WriteString(words + " ")
			}
		case html.StartTagToken:
			name, _ := tokens.TagName()
			if skipped == "" && slices.Contains(unread, string(name)) {
				skipped = string(name)
			}
			endLine(&b, string(name))
		case html.EndTagToken:
			name, _ := tokens.TagName()
			if skipped == string(name) {
				skipped = ""
			}
			endLine(&b, string(name))
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

func endLine(b *strings.Builder, element string) {
	if line := b.String(); !slices.Contains(inline, element) && line != "" && !strings.HasSuffix(line, "\n") {
		b.WriteByte('\n')
	}
}

// stripper removes what has no text, and counts what is hidden.
type stripper struct {
	hasStyles bool // the page has style sheets, which may give a background
	hidden    int
}

// strip removes what has no text, and the targets of links that are not addresses.
func (s *stripper) strip(parent *html.Node) {
	for n := parent.FirstChild; n != nil; {
		next := n.NextSibling
		switch {
		case n.Type == html.ElementNode && slices.Contains(unread, n.Data):
			parent.RemoveChild(n)
		case n.Type == html.ElementNode && s.isHidden(n):
			if strings.TrimSpace(webpage.TextOf(n)) != "" {
				s.hidden++
			}
			parent.RemoveChild(n)
		default:
			n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
				return (a.Key == "href" || a.Key == "src") && !isAddress(a.Val)
			})
			s.strip(n)
		}
		n = next
	}
}

// isHidden reports whether a page hides an element by its own attributes. What a style sheet hides is not known.
func (s *stripper) isHidden(n *html.Node) bool {
	style := styleOf(n)
	_, isHidden := attribute(n, "hidden")
	color := style["color"]
	if font, is := attribute(n, "color"); is {
		color = strings.ToLower(font)
	}
	return isHidden || style["display"] == "none" || style["visibility"] == "hidden" || isZero(style["font-size"]) || isZero(style["opacity"]) ||
		color == "transparent" || isWhite(color) && !s.hasStyles && !hasBackground(n)
}

func isZero(size string) bool {
	number := strings.TrimRight(size, "abcdefghijklmnopqrstuvwxyz%")
	return number != "" && strings.Trim(number, "0.") == ""
}

func isWhite(color string) bool {
	return slices.Contains([]string{"white", "#fff", "#ffffff", "rgb(255,255,255)", "hsl(0,0%,100%)"}, strings.ReplaceAll(color, " ", ""))
}

// hasBackground reports whether an element, or one around it, has a background of another color than white.
func hasBackground(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		style := styleOf(n)
		for _, name := range []string{"background", "background-color", "background-image"} {
			if value := style[name]; value != "" && !isWhite(value) {
				return true
			}
		}
		if value, is := attribute(n, "bgcolor"); is && !isWhite(strings.ToLower(value)) {
			return true
		}
	}
	return false
}

func hasStyles(page *html.Node) bool {
	return find(page, "style") != nil || slices.ContainsFunc(slices.Collect(page.Descendants()), func(n *html.Node) bool {
		rel, _ := attribute(n, "rel")
		return n.Type == html.ElementNode && n.Data == "link" && strings.Contains(strings.ToLower(rel), "stylesheet")
	})
}

// styleOf returns the declarations of the style attribute of an element, in lower case.
func styleOf(n *html.Node) map[string]string {
	value, is := attribute(n, "style")
	if !is {
		return nil
	}
	style := map[string]string{}
	for one := range strings.SplitSeq(strings.ToLower(value), ";") {
		name, value, _ := strings.Cut(one, ":")
		style[strings.TrimSpace(name)] = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
	}
	return style
}

func attribute(n *html.Node, name string) (value string, is bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// isAddress reports whether a target is relative, or has one of the schemes that readers follow.
func isAddress(target string) bool {
	scheme, _, found := strings.Cut(strings.TrimSpace(target), ":")
	return !found || strings.ContainsAny(scheme, "/?#") || slices.Contains([]string{"http", "https", "mailto"}, strings.ToLower(scheme))
}

// find returns the first element with the first of the names that has one, with a text; nil if there is none.
func find(page *html.Node, names ...string) *html.Node {
	for _, name := range names {
		for n := range page.Descendants() {
			if n.Type == html.ElementNode && n.Data == name && strings.TrimSpace(webpage.TextOf(n)) != "" {
				return n
			}
		}
	}
	return nil
}
