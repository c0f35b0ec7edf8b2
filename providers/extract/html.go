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
)

// readHTML reads a page as Markdown, without scripts, styles and embedded objects.
func readHTML(t *text, c content) error {
	raw, err := io.ReadAll(io.LimitReader(c.reader(), maxMarkup))
	if err != nil {
		return err
	}
	markdown, _, err := markdownOf(t.decode(raw, true))
	if err != nil {
		return err
	}
	if err := t.joined(markdown); err != nil {
		return err
	}
	t.truncated = c.size > maxMarkup
	return nil
}

// markdownOf returns the text of a page as Markdown, and its title or first heading.
func markdownOf(markup string) (markdown, title string, err error) {
	page, err := html.Parse(strings.NewReader(markup))
	if err != nil {
		return "", "", errComplex // the parser accepts everything but deep nesting
	}
	strip(page)
	title = textOf(find(page, "h1", "h2", "title"))
	to := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	out, err := to.ConvertNode(page)
	return string(out), title, err
}

// unread are the elements that have no text for a reader.
var unread = []string{"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "math", "canvas"}

// strip removes what has no text, and the targets of links that are not addresses.
func strip(parent *html.Node) {
	for n := parent.FirstChild; n != nil; {
		next := n.NextSibling
		if n.Type == html.ElementNode && slices.Contains(unread, n.Data) {
			parent.RemoveChild(n)
		} else {
			n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
				return (a.Key == "href" || a.Key == "src") && !isAddress(a.Val)
			})
			strip(n)
		}
		n = next
	}
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
			if n.Type == html.ElementNode && n.Data == name && strings.TrimSpace(textOf(n)) != "" {
				return n
			}
		}
	}
	return nil
}

func textOf(n *html.Node) string {
	var b strings.Builder
	if n != nil {
		for one := range n.Descendants() {
			if one.Type == html.TextNode {
				b.WriteString(one.Data)
			}
		}
	}
	return b.String()
}
