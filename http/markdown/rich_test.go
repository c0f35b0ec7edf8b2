package markdown

import (
	"strings"
	"testing"
	"time"
)

func TestFormulasAreMathML(t *testing.T) {
	for tex, want := range map[string]string{
		`a^2`:               `<msup><mi>a</mi><mn>2</mn></msup>`,
		`x_{i}^{12}`:        `<msubsup><mi>x</mi><mrow><mi>i</mi></mrow><mrow><mn>12</mn></mrow></msubsup>`,
		`\frac12`:           `<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>`,
		`\sqrt[3]{x}`:       `<mroot><mrow><mi>x</mi></mrow><mn>3</mn></mroot>`,
		`\mathbb{R}`:        `<mrow><mi>ℝ</mi></mrow>`,
		`a < b`:             `<mi>a</mi><mo>&lt;</mo><mi>b</mi>`,
		`\text{if <b>} x`:   `<mtext>if &lt;b&gt;</mtext><mi>x</mi>`,
		`\left( x \right.`:  `<mrow><mo fence="true" stretchy="true" form="prefix">(</mo><mi>x</mi></mrow>`,
		`\textbf{a <1}`:     `<mtext>𝐚 &lt;𝟏</mtext>`,
		`\hat{x}`:           `<mover accent="true"><mrow><mi>x</mi></mrow><mo stretchy="false">^</mo></mover>`,
		`f'`:                `<msup><mi>f</mi><mo>′</mo></msup>`,
		`\alpha \ne \infty`: `<mi>α</mi><mo>≠</mo><mi>∞</mi>`,
	} {
		if got, ok := mathML(tex, false); !ok || got != "<math><mrow>"+want+"</mrow></math>" {
			t.Errorf("%s is %s, %v", tex, got, ok)
		}
	}
	matrix := "<mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr><mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr></mtable>"
	if got, _ := mathML(`\begin{pmatrix} a & b \\ c & d \end{pmatrix}`, true); !strings.Contains(got, matrix) || !strings.Contains(got, `form="postfix">)</mo>`) {
		t.Errorf("a matrix is %s", got)
	}
	if got, _ := mathML(`\sum_{i=1}^n i`, true); !strings.Contains(got, "<munderover><mo>∑</mo>") {
		t.Errorf("a sum is %s", got)
	}
	for _, tex := range []string{
		`\int_0^1 \frac{x^2}{2}\,dx = \frac{1}{6}`, `\lim_{x \to 0} \frac{\sin x}{x} = 1`, `e^{i\pi} + 1 = 0`, `\begin{aligned} a &= b \\ &= c \end{aligned}`,
		`f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}`, `\vec{F} = m\,\vec{a}`, `\underbrace{a+b}_{2}`, `n \choose k`, `x \not= y`, `\boxed{x}`, `\bigl( x \bigr)`,
		`\operatorname{rank}(A)`, `\begin{array}{c|c} a & b \\ \hline c & d \end{array}`, `\sum_{\substack{i<n \\ j<m}} a`, `\left\{ x \middle| y \right\}`, `a \pmod{n}`, `{a \over b}`, `\mathbf{x}^\top \mathbf{y}`,
	} {
		if _, ok := mathML(tex, true); !ok {
			t.Errorf("%s is not rendered", tex)
		}
	}
	for _, tex := range []string{`\unknown`, `{a`, `a}`, `\frac`, `a^`, `a_b_c`, strings.Repeat(`\sqrt`, 100) + "x", `\begin{pmatrix} a`, `\begin{x}\end{x}`, `\left( a`, `\`, `&`, strings.Repeat("{", 100) + strings.Repeat("}", 100), strings.Repeat("a", maxTeX+1)} {
		if got, ok := mathML(tex, true); ok {
			t.Errorf("%.40s is %s", tex, got)
		}
	}
}

func TestTextsAreRenderedAsTheAppDoes(t *testing.T) {
	wantRendered(t, map[string]string{
		`\(a^2\) *b*`:                                             "<p><math><mrow><msup><mi>a</mi><mn>2</mn></msup></mrow></math> <em>b</em></p>\n",
		`$a*b*c$ and $5 or $6`:                                    "<p><math><mrow><mi>a</mi><mo>∗</mo><mi>b</mi><mo>∗</mo><mi>c</mi></mrow></math> and $5 or $6</p>\n",
		`$\nope{x}$`:                                              "<p><code>\\nope{x}</code></p>\n",
		"`$a$` [x](https://a.example/$a$)":                        "<p><code>$a$</code> <a href=\"https://a.example/$a$\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">x</a> <span class=\"host\">(a.example)</span></p>\n",
		"```sh\necho $a$ $b$\n```":                                "<figure><figcaption>sh</figcaption><pre tabindex=\"0\"><code><span class=\"keyword\">echo</span> $a$ $b$\n</code></pre></figure>\n",
		"```go\nfunc f() {} // x\n```":                            "<figure><figcaption>go</figcaption><pre tabindex=\"0\"><code><span class=\"keyword\">func</span> <span class=\"function\">f</span>() {} <span class=\"comment\">// x</span>\n</code></pre></figure>\n",
		"```diff\n+a\n-b\n c\n```":                                "<figure><figcaption>diff</figcaption><pre tabindex=\"0\"><code><span class=\"added\">+a</span>\n<span class=\"removed\">-b</span>\n c\n</code></pre></figure>\n",
		"H<sub>2</sub>O <kbd>Esc</kbd>":                           "<p>H<sub>2</sub>O <kbd>Esc</kbd></p>\n",
		"a<br>b <b>c</b> <kbd onclick=x>":                         "<p>a<br>b &lt;b&gt;c&lt;/b&gt; &lt;kbd onclick=x&gt;</p>\n",
		"10~20 or 30~40, ~a~, ~~~b~~~":                            "<p>10~20 or 30~40, ~a~, ~~~b~~~</p>\n",
		"==a== b == c":                                            "<p><mark>a</mark> b == c</p>\n",
		"- [x] a\n- [ ] b":                                        "<ul>\n<li><span class=\"task\">☑</span> a</li>\n<li><span class=\"task\">☐</span> b</li>\n</ul>\n",
		"> [!WARNING]\n> Look.":                                   "<blockquote class=\"alert warning\">\n<p class=\"title\">Warning</p>\n<p>Look.</p>\n</blockquote>\n",
		"> [!OTHER]\n> Look.":                                     "<blockquote>\n<p>[!OTHER]\nLook.</p>\n</blockquote>\n",
		"<details>\n<summary>More</summary>\n\n*a*\n\n</details>": "<details>\n<summary>More</summary>\n<p><em>a</em></p>\n</details>\n",
		"<details>\n<summary>*a* `b` $c$ <b></summary>\n*d*\n</details>\n*e*":      "<details>\n<summary><em>a</em> <code>b</code> <math><mrow><mi>c</mi></mrow></math> &lt;b&gt;</summary>\n<p><em>d</em></p>\n</details>\n<p><em>e</em></p>\n",
		"<details><summary># a</summary>*b*</details>":                             "<details><summary># a</summary>\n<p><em>b</em></p>\n</details>\n",
		"1. a\n   <details>\n   <summary>b</summary>\n   *c*\n   </details>\n2. d": "<ol>\n<li>\n<p>a</p>\n<details>\n<summary>b</summary>\n<p><em>c</em></p>\n</details>\n</li>\n<li>\n<p>d</p>\n</li>\n</ol>\n",
		"```html\n<details><summary>a</summary>\n```":                              "<figure><figcaption>html</figcaption><pre tabindex=\"0\"><code>&lt;details&gt;&lt;summary&gt;a&lt;/summary&gt;\n</code></pre></figure>\n",
	})
}

// wantRendered checks the HTML of texts, each on a page of its own.
func wantRendered(t *testing.T, texts map[string]string) {
	t.Helper()
	for source, want := range texts {
		if got := string(Render(NewBudget(t.Context()), source)); got != want {
			t.Errorf("%q is rendered as %q, want %q", source, got, want)
		}
	}
}

func TestFootnotesOfTheTextsOfAPageDiffer(t *testing.T) {
	b := NewBudget(t.Context())
	first, second := string(Render(b, "A fact.[^a]\n\n[^a]: Its source.")), string(Render(b, "Another.[^a]\n\n[^a]: More."))
	for html, want := range map[string][]string{first: {`href="#text1-fn:1"`, `<li id="text1-fn:1">`, "Its source."}, second: {`href="#text2-fn:1"`, `<li id="text2-fn:1">`}} {
		for _, part := range want {
			if !strings.Contains(html, part) {
				t.Errorf("%s lacks %s", html, part)
			}
		}
	}
}

func TestAFootnoteThatNothingRefersToIsKept(t *testing.T) {
	got := string(Render(NewBudget(t.Context()), "A fact.[^b]\n\n[^a]: Unused.\n[^b]: Its source."))
	if used, unused := strings.Index(got, "Its source."), strings.Index(got, "Unused."); used < 0 || unused < used {
		t.Error(got)
	}
}

func TestTheTitlesOfAlertsAreInTheLanguageOfThePage(t *testing.T) {
	b := NewBudget(t.Context())
	b.AlertTitles = map[string]string{"note": "Hinweis"}
	if got := string(Render(b, "> [!NOTE]\n> a")); !strings.Contains(got, `<p class="title">Hinweis</p>`) {
		t.Error(got)
	}
}

// Only the service writes placeholders: its author cannot have a formula shown again, or in an address.
func TestReferencesToCharactersAreNoPlaceholders(t *testing.T) {
	wantRendered(t, map[string]string{
		"$x$ &#xE000;0&#xE001;":                              "<p><math><mrow><mi>x</mi></mrow></math> </p>\n",
		"[a](mailto:&#xE000;&#xE000;9&#xE001;0&#xE001;) $x$": "<p>a <math><mrow><mi>x</mi></mrow></math></p>\n",
		"[a](https://%EE%80%800%EE%80%81/) $x$":              "<p>a <math><mrow><mi>x</mi></mrow></math></p>\n",
	})
}

func TestFormulasAreFoundInLinearTime(t *testing.T) {
	source := strings.Repeat(strings.Repeat("\\(\n", maxFormula/3-10)+"\n\\)", 300)
	before := processorTime(t)
	if _, found := extractFormulas(source); len(found) != 0 {
		t.Errorf("%d formulas have an empty line", len(found))
	}
	if took := processorTime(t) - before; took > 5*time.Second {
		t.Errorf("it takes %v of processor time", took)
	}
}

func TestCodeDrawsOnTheBudgetOfItsPage(t *testing.T) {
	b := NewBudget(t.Context())
	source, shown := strings.Repeat("+\n", 50_000), 0
	for range 20 {
		shown += len(Code(b, source, "diff"))
	}
	if shown > 20*len(source)+pageSteps/formulaSteps || !b.over {
		t.Errorf("code of a page becomes %d bytes", shown)
	}
}

func TestFormulasDoNotMakeAPageLarge(t *testing.T) {
	source := strings.Repeat("$"+strings.Repeat("(", maxTeX-2)+"$ ", 500)
	if got := len(Render(NewBudget(t.Context()), source)); got > 4*len(source) {
		t.Errorf("%d bytes of formulas become %d", len(source), got)
	}
}
