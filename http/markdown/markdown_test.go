package markdown

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMarkdownIsRenderedWithoutItsHTML(t *testing.T) {
	for source, want := range map[string]string{
		"# One\n\n*two* **three** ~~four~~ `five`": "<h3>One</h3>\n<p><em>two</em> <strong>three</strong> <del>four</del> <code>five</code></p>\n",
		"<b>x</b>":                              "<p>&lt;b&gt;x&lt;/b&gt;</p>\n",
		"<div>\nx\n</div>\n\ny":                 "<p>&lt;div&gt;\nx\n&lt;/div&gt;\n</p>\n<p>y</p>\n",
		"<script>\nx\n</script>\n":              "<p>&lt;script&gt;\nx\n&lt;/script&gt;\n</p>\n",
		"1. a\n2. b":                            "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n",
		"3. a":                                  "<ol start=\"3\">\n<li>a</li>\n</ol>\n",
		"|a|b|\n|:-|-:|\n|c|d|":                 "<div class=\"table\" tabindex=\"0\">\n<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">c</td>\n<td align=\"right\">d</td>\n</tr>\n</tbody>\n</table>\n</div>\n",
		"[a](https://example.org/x?y=1&z)":      "<p><a href=\"https://example.org/x?y=1&amp;z\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">a</a> <span class=\"host\">(example.org)</span></p>\n",
		"<mail@example.org>":                    "<p><a href=\"mailto:mail@example.org\" rel=\"nofollow noreferrer\">mail@example.org</a></p>\n",
		"[a](https://example.org?a&amp;b)":      "<p><a href=\"https://example.org?a&amp;b\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">a</a> <span class=\"host\">(example.org)</span></p>\n",
		"[a](&#106;avascript:x)":                "<p>a</p>\n",
		"see https://example.org/a":             "<p>see <a href=\"https://example.org/a\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">https://example.org/a</a></p>\n",
		"[a](javascript:x) [b](/c) ![d](e.png)": "<p>a b d</p>\n",
		"![chart](https://example.org/c.png)":   "<p><a href=\"https://example.org/c.png\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">chart</a> <span class=\"host\">(example.org)</span></p>\n",
		"a\nb":                                  "<p>a\nb</p>\n",
		"    code <i>":                          "<pre tabindex=\"0\"><code>code &lt;i&gt;\n</code></pre>\n",
	} {
		if got := string(Render(NewBudget(t.Context()), source)); got != want {
			t.Errorf("%q is rendered as %q, want %q", source, got, want)
		}
	}
}

// longTexts are texts for which Markdown parsers are slow, or whose HTML is much longer.
func longTexts() map[string]string {
	const n = maxMarkdown
	rest := func(first, line string) string {
		return first + "\n" + strings.Repeat(line, max(0, n-len(first)-1)/len(line))
	}
	var ticks, lists strings.Builder
	for i := 1; ticks.Len() < n; i++ {
		ticks.WriteString(strings.Repeat("`", i) + " ")
	}
	for i := 0; lists.Len() < n; i++ {
		lists.WriteString(strings.Repeat("  ", i) + "* a\n")
	}
	texts := map[string]string{
		"quotes and lazy lines": rest(strings.Repeat(">", n/2), "a\n"), "lists and lazy lines": rest(strings.Repeat("* ", n/4), "a\n"),
		"32 quotes and lazy lines": rest(strings.Repeat("> ", maxNesting), "a\n"), "32 lists and blank lines": rest(strings.Repeat("- ", maxNesting), "\n"),
		"a table of many columns": rest("|"+strings.Repeat("a|", 1000)+"\n|"+strings.Repeat("-|", 1000), "|a\n"), "a table of few columns": rest("a|b\n-|-", "|a\n"),
		"one wide row": strings.Repeat("a|", n/4) + "\n" + strings.Repeat("-|", n/4-1), "backticks": ticks.String(), "nested lists": lists.String(),
		"half open": strings.Repeat("[", n/2) + strings.Repeat("]", n/2), "2000 brackets": strings.Repeat("[a](", maxMarks) + strings.Repeat("]", n/2), "comments": strings.Repeat("<!--", n/4),
		"200 open brackets, again and again": strings.Repeat(strings.Repeat("[a](", maxOpen)+"\n\n", n/(4*maxOpen+2)), "200 open brackets, closed": strings.Repeat(strings.Repeat("[", maxOpen)+strings.Repeat("]", maxOpen), 10),
		"10,000 columns": "|" + strings.Repeat("a|", 10_000) + "\n|" + strings.Repeat("-|", 10_000), "references": strings.Repeat("[a]: b\n", 1000) + strings.Repeat("[a] ", 1000),
		"an address that many links have": strings.Repeat("[a] ", maxMarks-10) + "\n\n[a]: http://a/" + strings.Repeat("a", n*3/4), "an address of the usual length": strings.Repeat("[a] ", maxMarks-10) + "\n\n[a]: http://a/" + strings.Repeat("a", maxAddress-9),
		"tables that are filled up": strings.Repeat("|"+strings.Repeat("a|", 200)+"\n|"+strings.Repeat("-|", 200)+"\n"+strings.Repeat("|\n", 90)+"\n", n/1000), "a formula and references to its placeholder": "$" + strings.Repeat("\"", maxFormula-10) + "$ " + strings.Repeat("&#xE000;0&#xE001; ", n/20),
		"accents of accents": strings.Repeat("$$"+strings.Repeat(`\hat`, 470)+"x$$\n\n", n/2000), "a diff": "```diff\n" + strings.Repeat("+\n", n/2-10), "code": "```go\n" + strings.Repeat("1 ", maxHighlighted/2),
		"one long run of backticks": strings.Repeat("`", n-2) + " `", "opened comments": strings.Repeat("<!-- ", 1999), "sections": strings.Repeat("<details><summary>"+strings.Repeat("*a", 50)+"</summary>b</details>\n", 499), "titles of sections": strings.Repeat("<summary>"+strings.Repeat("*a", 20)+"</summary>", 999), "opened autolinks": strings.Repeat("<http://a", 1999),
	}
	for _, unit := range []string{
		"[", "]", "[]", "![", "$a$", "$", "$$", "\\(", "\\(a\\)", "$\\frac{a}{b}$ ", "$\\sqrt{", "==a ", "=", "a==", "> [!NOTE]\n", "[^a]", "[^a]: b\n", "<kbd>", "<details>\n", "<br>", "```go\n\"a\n```\n", "- [x] a\n", "[a](", "[a](<b", "*a **a ", "a**b", "*", "a_b", "*_", "a***b_", "~~a", "a~b", ">", "> ", "* ", "1. ", "- ", "|\n", "<a", "<a href=\"", "<![CDATA[", "<?", "<!A ",
		"http://a.", "www.a(", "a@", "http://a.b/)) ", "[a]: b\n", "[a]: <b\n", "[a]: b 'c\n", "&", "\\", " ", "\t", "a   \n", "a\n=\n", "- - ", "```\n", "#", "# ", "\x00", "\r", "\xff", "[a][b] ", "(", "\"",
	} {
		texts[unit] = strings.Repeat(unit, n/len(unit))
	}
	return texts
}

func TestNoTextIsSlowOrGrowsWithoutBounds(t *testing.T) {
	for name, source := range longTexts() {
		before := processorTime(t)
		html := Render(NewBudget(t.Context()), source[:min(len(source), maxMarkdown)])
		took := processorTime(t) - before
		t.Logf("%q takes %v of processor time", name, took)
		if took > 5*time.Second {
			t.Errorf("%q takes %v of processor time", name, took)
		}
		if len(html) > 40*maxMarkdown {
			t.Errorf("%q becomes %d bytes", name, len(html))
		}
	}
}

// processorTime returns the processor time that this process has used. Unlike the time of day it does not depend on other
// processes.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestMoreThan200OpenBracketsArePlainText(t *testing.T) {
	for open, want := range map[int]bool{maxOpen: true, maxOpen + 1: false} {
		for _, source := range []string{strings.Repeat("[", open), strings.Repeat("![", open), strings.Repeat("[\n", open), strings.Repeat("[", open) + strings.Repeat("]", open)} {
			if renderable(source) != want {
				t.Errorf("%d brackets of %.8q: %v", open, source, !want)
			}
		}
	}
	if source := strings.Repeat("[a](https://example.org) ", 500); !renderable(source) {
		t.Error("500 links are not rendered")
	}
}

// TestThePagesBudgetBoundsTheStepsOfAllItsTexts renders the texts of longTexts as the messages of one page, many times.
func TestThePagesBudgetBoundsTheStepsOfAllItsTexts(t *testing.T) {
	b := NewBudget(t.Context())
	texts := longTexts()
	for !b.over {
		before := b.left
		for _, source := range texts {
			_ = Render(b, source[:min(len(source), maxMarkdown)])
		}
		if b.left == before {
			t.Fatal("texts take no steps")
		}
	}
	if b.left < -2*maxMarkdown || b.late {
		t.Errorf("%d steps more than the budget were taken", -b.left)
	}
	if got := Render(b, "*a* <b>"); got != `<p class="plain">*a* &lt;b&gt;</p>` {
		t.Errorf("the rest is rendered as %s", got)
	}
}

func TestAnAnswerOfUsualMarkdownTakesLittleOfTheBudget(t *testing.T) {
	b := NewBudget(t.Context())
	source := strings.Repeat("## A heading\n\nSome *emphasis*, **more** and `code` with [a link](https://example.org/a_b), in a\nparagraph (of two lines).\n\n- one\n- two\n\n| a | b |\n|-|-|\n| 1 | 2 |\n\n", 300)
	html := string(Render(b, source))
	if taken := pageSteps - b.left; taken > pageSteps/10 || strings.Count(html, "<table>") != 300 {
		t.Errorf("%d steps for %d bytes", taken, len(source))
	}
}

func TestRenderingStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := NewBudget(ctx)
	cancel()
	if got := Render(b, "*a*"); got != `<p class="plain">*a*</p>` || !b.late || b.left < pageSteps-10 {
		t.Errorf("rendered %s, late %v, %d steps", got, b.late, pageSteps-b.left)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, source := range []string{"# a", "[a](b)", "<script>x</script>", "|a|\n|-|\n|b|", "> * `a`", "![a](javascript:x)", "&#106;avascript:x", "<a href=x onclick=y>"} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		html := string(Render(NewBudget(t.Context()), source))
		for _, forbidden := range []string{"<script", "<img", "<style", "<iframe", "<svg", "<form", "javascript:\"", " onclick=\"", " style=\"", " src=\""} {
			if strings.Contains(strings.ToLower(html), forbidden) {
				t.Errorf("%q is rendered as %q", source, html)
			}
		}
	})
}
