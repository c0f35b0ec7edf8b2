package page

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"turnstone/actors/toolbox"
	"turnstone/protocol/clip"
	"turnstone/providers/outbound"
)

// The limits of the markup of a page, whose tree in memory has many times its size. What is beyond them is left out.
const (
	maxMarkup = 2 << 20
	maxTags   = 50_000
	// maxDepth is the depth of a tree up to which its article is looked for, for which the text of each element is read.
	maxDepth = 150
	maxTitle = 300 // bytes
	maxLink  = 1000
	// fewWords is the number of words up to which a page is checked for a reason why it has so few.
	fewWords = 60
)

// document is the tree of an HTML page.
type document struct {
	root  *html.Node
	base  *url.URL // to which links are relative
	depth int      // of the tree
	seen  traits
}

// readHTML reads an HTML page.
func (p *Page) readHTML(ctx context.Context, response *outbound.Response) error {
	markup, cut := bounded(decoded(response.Body, response.Header.Get("Content-Type"), true))
	root, err := html.Parse(strings.NewReader(markup))
	if err != nil { // the parser accepts everything but deep nesting
		return &toolbox.Failure{Code: "unreadable", Detail: "The elements of the page are nested too deeply, so it was not read."}
	}
	d := &document{root: root, base: response.URL}
	d.inspect()
	d.clean()
	if err := ctx.Err(); err != nil {
		return err
	}
	article, published := d.article(response.URL)
	p.Title, p.Published = shortened(d.seen.title), published
	p.Canonical, p.Author, p.DOI = d.canonical(response.URL), d.seen.authors, d.seen.doi
	if d.seen.language != "" {
		p.Language = d.seen.language
	}
	if p.Text, err = markdown(d.root); err != nil {
		return err
	}
	if article != nil && ctx.Err() == nil {
		text, err := markdown(article)
		if err == nil && isArticle(text, p.Text) {
			p.Text = text
		}
	}
	if cut {
		p.note("The markup of the page is very large. This is its beginning.")
	}
	p.Notes = append(p.Notes, d.seen.notes(p.Text, response)...)
	if d.seen.refresh != "" && len(strings.Fields(p.Text)) < fewWords { // within the text of the page, since the page has chosen it
		p.Text = strings.TrimSpace(p.Text + "\n\nForwards to: " + d.seen.refresh)
	}
	return ctx.Err()
}

// bounded returns the beginning of a markup within the limits.
func bounded(markup string) (beginning string, cut bool) {
	if len(markup) > maxMarkup {
		markup, cut = clip.Bytes(markup, maxMarkup), true
	}
	tags := 0
	for at := 0; ; at++ {
		next := strings.IndexByte(markup[at:], '<')
		if next < 0 {
			return markup, cut
		}
		if at += next; tags == maxTags {
			return markup[:at], true
		}
		tags++
	}
}

// article returns the main part of the page, and when it was published. nil: none was found.
func (d *document) article(address *url.URL) (main *html.Node, published string) {
	if d.depth > maxDepth || !readability.CheckDocument(d.root) {
		return nil, ""
	}
	found, err := readability.FromDocument(d.root, address)
	if err != nil {
		return nil, ""
	}
	if at, err := found.PublishedTime(); err == nil {
		published = at.Format("2006-01-02")
	}
	return found.Node, published
}

// isArticle reports whether the main part of a page has enough of its text: what looks like one is often only a teaser.
func isArticle(main, whole string) bool {
	const least = 100 // words
	n := len(strings.Fields(main))
	return n >= least && n*4 >= len(strings.Fields(whole)) || n*2 >= len(strings.Fields(whole))
}

// markdown returns a tree as Markdown.
func markdown(root *html.Node) (string, error) {
	to := converter.NewConverter(
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()),
		converter.WithEscapeMode(converter.EscapeModeDisabled), // a model reads a star as a star
	)
	out, err := to.ConvertNode(root)
	return strings.TrimSpace(string(out)), err
}

// unread are the elements that have no text for a reader.
var unread = []string{
	"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "math", "canvas", "head", "input", "select", "datalist", "audio", "video", "map", "meta", "link", "base", "dialog",
}

// clean removes what a reader of the page does not see, and everything but the targets of links and the texts of pictures from
// the attributes.
func (d *document) clean() {
	sheet := styleSheetOf(d.root)
	d.cleanBelow(d.root, sheet, surroundings{}, 0)
}

func (d *document) cleanBelow(parent *html.Node, sheet styleSheet, around surroundings, depth int) {
	d.depth = max(d.depth, depth)
	for n := parent.FirstChild; n != nil; {
		next := n.NextSibling
		switch {
		case n.Type == html.CommentNode, n.Type == html.DoctypeNode:
			parent.RemoveChild(n)
		case n.Type != html.ElementNode:
		case slices.Contains(unread, n.Data) && n.Data != "head", sheet.hides(n, around):
			parent.RemoveChild(n)
		case n.Data == "img":
			parent.InsertBefore(&html.Node{Type: html.TextNode, Data: pictureText(n)}, n)
			parent.RemoveChild(n)
		case n.Data == "head":
			keepTitleAndMetadata(n)
		default:
			within := around.below(n)
			d.keepAttributes(n)
			d.cleanBelow(n, sheet, within, depth+1)
		}
		n = next
	}
}

// keepTitleAndMetadata removes everything from the head but what says when the page was published.
func keepTitleAndMetadata(head *html.Node) {
	for n := head.FirstChild; n != nil; {
		next := n.NextSibling
		if n.Type != html.ElementNode || n.Data != "meta" {
			head.RemoveChild(n)
		}
		n = next
	}
}

// keepAttributes keeps the attributes that the search for the article and the conversion to Markdown use.
func (d *document) keepAttributes(n *html.Node) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		switch a.Key {
		case "href":
			target, valid := d.target(a.Val)
			if n.Data != "a" || !valid {
				n.Data, n.DataAtom = "span", atom.Span // only its text
				continue
			}
			a.Val = target
		case "class", "id", "role", "start", "colspan", "rowspan", "lang", "itemprop", "rel":
		default:
			continue
		}
		kept = append(kept, a)
	}
	n.Attr = kept
}

// pictureText returns the text that a picture has for readers who do not see it.
func pictureText(picture *html.Node) string {
	if alt := strings.TrimSpace(attribute(picture, "alt")); alt != "" {
		return "(image: " + shortened(alt) + ")"
	}
	return ""
}
