package page

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"turnstone/protocol/clip"
	"turnstone/protocol/foreign"
)

// target returns the address of a link, if it is one that can be read.
func (d *document) target(link string) (string, bool) {
	parsed, err := url.Parse(strings.TrimSpace(link))
	if err != nil || strings.HasPrefix(link, "#") {
		return "", false
	}
	address := d.base.ResolveReference(parsed)
	address.Fragment = ""
	text := address.String()
	return text, (address.Scheme == "https" || address.Scheme == "http") && address.Host != "" && address.User == nil && len(text) <= maxLink
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// shortened returns a text on one line, within the limit of a title.
func shortened(text string) string {
	text = foreign.OneLine(text)
	if len(text) > maxTitle {
		text = clip.Bytes(text, maxTitle) + "…"
	}
	return text
}

// TextOf returns the text of all that is in a node.
func TextOf(n *html.Node) string {
	var b strings.Builder
	for one := range n.Descendants() {
		if one.Type == html.TextNode {
			b.WriteString(one.Data)
		}
	}
	return b.String()
}
