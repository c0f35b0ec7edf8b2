package markdown

import (
	"bytes"
	"context"
	"errors"
	"html/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// pageSteps is what the Markdown of one page may cost. A step is about a byte that the parser looks at more than once; a
// page that uses all of them takes a few tenths of a second. Pages of usual answers need less than a tenth of them.
const pageSteps = 50_000_000

// Budget limits the work for the Markdown of one page. It belongs to one goroutine.
type Budget struct {
	ctx  context.Context // of the request
	left int             // steps
	over bool            // the rest of the page is plain text
	late bool            // because the context ended

	texts int // that were converted

	// AlertTitles are the titles of alerts in the language of the page, by the keys of Alerts; nil: in English.
	AlertTitles map[string]string

	block      ast.Node // whose marks are counted
	delimiters int      // of the block
}

// NewBudget returns the budget of one page.
func NewBudget(ctx context.Context) *Budget { return &Budget{ctx: ctx, left: pageSteps} }

// exhausted is the value with which take leaves the parser, which has no other way to stop.
type exhausted struct{}

// Late reports whether the rest of the page is plain text because the context has ended.
func (b *Budget) Late() bool { return b.late }

// take takes steps from the budget. If there are none left, or the context has ended, it panics with exhausted.
func (b *Budget) take(steps int) {
	b.left -= steps
	if b.late = b.ctx.Err() != nil; b.late || b.left < 0 {
		b.over = true
		panic(exhausted{})
	}
}

var budgetKey = parser.NewContextKey()

// convert returns the HTML of Markdown; false: the budget does not suffice.
func (b *Budget) convert(source string) (html template.HTML, ok bool) {
	text, formulas := extractFormulas(separateSections(source))
	root := b.parse(converter, []byte(text))
	if root == nil {
		return "", false
	}
	b.texts++
	root.OwnerDocument().SetMeta(map[string]any{metaFormulas: formulas, metaNumber: b.texts, metaTitles: b.AlertTitles, metaBudget: b})
	out := &page{budget: b}
	if err := converter.Renderer().Render(out, []byte(text), root); err != nil {
		return "", false
	}
	safe := string(sanitizer.SanitizeBytes(out.html.Bytes()))
	return template.HTML(replacePlaceholders(safe, formulas, b.formula)), true // it is sanitized, and formulas are escaped
}

// htmlSteps is what a byte of HTML costs, which is sanitized: a byte of Markdown can become thousands of them, if a link that is
// defined once is used often.
const htmlSteps = 30

// page is the HTML of a text. It takes what the budget suffices for.
type page struct {
	budget *Budget
	html   bytes.Buffer
}

// Write implements io.Writer.
func (p *page) Write(b []byte) (int, error) {
	if !p.budget.spend(htmlSteps * len(b)) {
		return 0, errBudget
	}
	return p.html.Write(b)
}

var errBudget = errors.New("the budget of the page does not suffice")

// spend takes steps from the budget, and reports whether it has enough of them.
func (b *Budget) spend(steps int) bool {
	if b.over = b.over || steps > b.left; !b.over {
		b.left -= steps
	}
	return !b.over
}

// formulaSteps is what a byte of MathML or of highlighted code costs. A letter can become thirty of them.
const formulaSteps = 20

// formula returns a formula as MathML, or as its source if the budget does not suffice.
func (b *Budget) formula(f *formula) string {
	if !f.first() {
		return ""
	}
	if html := formulaHTML(f); b.spend(formulaSteps * len(html)) {
		return html
	}
	return formulaSource(f)
}

// Code returns the HTML of code that is not part of Markdown. Code that exceeds the budget is not highlighted.
func Code(b *Budget, code, language string) template.HTML {
	if !b.over {
		if html := highlight(code, language); b.spend(formulaSteps * len(html)) {
			return html
		}
	}
	return template.HTML(template.HTMLEscapeString(code)) // it is escaped
}

// parse returns the tree of Markdown; nil: the budget does not suffice.
func (b *Budget) parse(md goldmark.Markdown, source []byte) (root ast.Node) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, expected := reason.(exhausted); !expected {
				panic(reason)
			}
			root = nil
		}
	}()
	b.take(2 * len(source)) // to parse and to render it
	pc := parser.NewContext()
	pc.Set(budgetKey, b)
	return md.Parser().Parse(text.NewReader(source), parser.WithContext(pc))
}

// meter is an inline parser that parses nothing. The parser calls it at every mark, before the parsers that may look at the
// rest of the block, or at all marks before this one.
type meter struct{}

// Trigger implements parser.InlineParser.
func (meter) Trigger() []byte { return []byte(" !\"&'()*<=[\\]_`~") }

// Parse implements parser.InlineParser.
func (meter) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	b := pc.Get(budgetKey).(*Budget) // convert has set it
	switch block.Peek() {
	case '!', '<', '[', ']', '`', '(':
		_, at := block.Position()
		lines := parent.Lines()
		b.take(1 + lines.At(lines.Len()-1).Stop - at.Start)
	case '*', '=', '_', '~':
		if b.block != parent {
			b.block, b.delimiters = parent, 0
		}
		b.delimiters++
		b.take(1 + b.delimiters/4)
	default:
		b.take(1)
	}
	return nil
}
