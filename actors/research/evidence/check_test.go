package evidence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const marker = "(not supported by a source)"

// sources are the excerpts of the tests.
var sources = map[int][]string{
	1:  {"The Gotthard Base Tunnel is a railway tunnel in Switzerland with a length of 57 kilometres. It opened on 1 June 2016."},
	2:  {"Unrelated text about cooking.", "The Seikan Tunnel in Japan has a length of 53.9 kilometres; it opened in March 1988."},
	3:  {"北京市人口为2180万人。"},
	4:  {"Der Anteil der erneuerbaren Energien am Stromverbrauch betrug 2023 52 Prozent."},
	5:  {"Le traitement n'a pas réduit la mortalité chez les patients."},
	6:  {"En 2023 el paro bajó hasta el 11,6 %."},
	7:  {"В 2021 году экспорт вырос на 15 %."},
	8:  {"東京都の人口は1400万人に達した。"},
	9:  {"بلغ عدد سكان القاهرة 10 ملايين نسمة."},
	10: {"दिल्ली की जनसंख्या 20000000 है।"},
}

func TestCitationsHold(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"kept":                  {"The Gotthard Base Tunnel is 57 km long [1].", "The Gotthard Base Tunnel is 57 km long [1]."},
		"after the stop":        {"The Gotthard Base Tunnel is 57 km long.[1] Why?", "The Gotthard Base Tunnel is 57 km long.[1] Why?"},
		"wrong number":          {"The Gotthard Base Tunnel is 75 km long [1].", "The Gotthard Base Tunnel is 75 km long (not supported by a source)."},
		"wrong source":          {"The Gotthard Base Tunnel is 57 km long [2].", "The Gotthard Base Tunnel is 57 km long [1]."},
		"no such source":        {"The Gotthard Base Tunnel is 57 km long [99].", "The Gotthard Base Tunnel is 57 km long [1]."},
		"never cited":           {"The Gotthard Base Tunnel is 57 km long.", "The Gotthard Base Tunnel is 57 km long [1]."},
		"no excerpt":            {"Whales are the largest animals of all oceans [1].", "Whales are the largest animals of all oceans (not supported by a source)."},
		"one of two":            {"The Gotthard Base Tunnel is 57 km long [1, 2].", "The Gotthard Base Tunnel is 57 km long [1]."},
		"range":                 {"The Gotthard Base Tunnel is 57 km long [1-3].", "The Gotthard Base Tunnel is 57 km long [1]."},
		"twice":                 {"The Gotthard Base Tunnel is 57 km long [1][1].", "The Gotthard Base Tunnel is 57 km long [1]."},
		"other forms":           {"The Gotthard Base Tunnel is 57 km long【1】. The Gotthard Base Tunnel is 57 km long[^1]. The Gotthard Base Tunnel is 57 km long.¹ The Gotthard Base Tunnel is 57 km long<sup>1</sup>. The Gotthard Base Tunnel is 57 km long 【1†source】.", "The Gotthard Base Tunnel is 57 km long[1]. The Gotthard Base Tunnel is 57 km long[1]. The Gotthard Base Tunnel is 57 km long.[1] The Gotthard Base Tunnel is 57 km long[1]. The Gotthard Base Tunnel is 57 km long [1]."},
		"escaped":               {`The Gotthard Base Tunnel is 57 km long \[1\].`, "The Gotthard Base Tunnel is 57 km long [1]."},
		"linked":                {"The Gotthard Base Tunnel is 57 km long [1](https://invented.example/x).", "The Gotthard Base Tunnel is 57 km long [1]."},
		"parts":                 {"The Gotthard Base Tunnel is 57 kilometres long [1], and the Seikan Tunnel is 53.9 kilometres long [2].", "The Gotthard Base Tunnel is 57 kilometres long [1], and the Seikan Tunnel is 53.9 kilometres long [2]."},
		"parts exchanged":       {"The Gotthard Base Tunnel is 57 kilometres long [2], and the Seikan Tunnel is 53.9 kilometres long [1].", "The Gotthard Base Tunnel is 57 kilometres long, and the Seikan Tunnel is 53.9 kilometres long (not supported by a source)."},
		"part without":          {"The Gotthard Base Tunnel is 57 kilometres long [1], and the Channel Tunnel is 50.5 kilometres long.", "The Gotthard Base Tunnel is 57 kilometres long [1], and the Channel Tunnel is 50.5 kilometres long (not supported by a source)."},
		"parentheses":           {"The Gotthard Base Tunnel is 57 km long (1).", "The Gotthard Base Tunnel is 57 km long (1) [1]."},
		"year in brackets":      {"See the note [2019] of the editor.", "See the note [2019] of the editor (not supported by a source)."},
		"heading":               {"# The tunnel [1]\n\nWhy?", "# The tunnel\n\nWhy?"},
		"link text":             {"Why does [the page [1]](https://example.com) exist?", "Why does [the page](https://example.com) exist?"},
		"code":                  {"```\nx[1] 【1】\n```\nIs `a[1]` or `b[^1]` code?", "```\nx[1]\n```\nIs `a[1]` or `b` code?"},
		"definition":            {"Why?\n\n[1]: https://invented.example\n[page]: https://example.com\n", "Why?\n\n\n[page]: https://example.com\n"},
		"power":                 {"The area of m² and 10³ is not a citation of anything?", "The area of m² and 10³ is not a citation of anything?"},
		"question":              {"Is the Gotthard Base Tunnel 57 km long?", "Is the Gotthard Base Tunnel 57 km long?"},
		"introduction":          {"This report compares two tunnels.", "This report compares two tunnels."},
		"list":                  {"- The Gotthard Base Tunnel is 57 km long\n- Whales are the largest animals of all\n", "- The Gotthard Base Tunnel is 57 km long [1]\n- Whales are the largest animals of all (not supported by a source)\n"},
		"table":                 {"| Tunnel | Length |\n|---|---|\n| Gotthard Base Tunnel | 57 km |\n| Seikan Tunnel | 99 km [2] |\n", "| Tunnel | Length |\n|---|---|\n| Gotthard Base Tunnel | 57 km [1] |\n| Seikan Tunnel | 99 km (not supported by a source) |\n"},
		"bold":                  {"**The Gotthard Base Tunnel is 57 km long.**", "**The Gotthard Base Tunnel is 57 km long [1].**"},
		"link at the end":       {"The Gotthard Base Tunnel is as long as [57 km](https://example.com/a.).", "The Gotthard Base Tunnel is as long as [57 km](https://example.com/a.) [1]."},
		"negation":              {"The Gotthard Base Tunnel did not open on 1 June 2016 [1].", "The Gotthard Base Tunnel did not open on 1 June 2016 (not supported by a source)."},
		"Chinese":               {"北京市人口约为2180万人。上海市人口约为2480万人[3]。", "北京市人口约为2180万人[3]。上海市人口约为2480万人 (not supported by a source)。"},
		"German":                {"Der Anteil erneuerbarer Energien lag 2023 bei 52 Prozent.", "Der Anteil erneuerbarer Energien lag 2023 bei 52 Prozent [4]."},
		"French":                {"Le traitement a réduit la mortalité [5]. Le traitement n'a pas réduit la mortalité.", "Le traitement a réduit la mortalité (not supported by a source). Le traitement n'a pas réduit la mortalité [5]."},
		"Spanish":               {"El paro bajó al 11,6 por ciento en 2023 [6].", "El paro bajó al 11,6 por ciento en 2023 [6]."},
		"Russian":               {"Экспорт вырос на 15 процентов в 2021 году [7]. Экспорт вырос на 16 процентов в 2021 году [7].", "Экспорт вырос на 15 процентов в 2021 году [7]. Экспорт вырос на 16 процентов в 2021 году (not supported by a source)."},
		"Japanese":              {"東京都の人口は約1400万人である[8]。", "東京都の人口は約1400万人である[8]。"},
		"Arabic":                {"يبلغ عدد سكان القاهرة ١٠ ملايين نسمة [٩].", "يبلغ عدد سكان القاهرة ١٠ ملايين نسمة [9]."},
		"Hindi":                 {"दिल्ली की जनसंख्या लगभग 2 करोड़ है।", "दिल्ली की जनसंख्या लगभग 2 करोड़ है [10]।"},
		"a marker by the model": {"Whales are the largest animals of all oceans (not supported by a source). Why (not supported by a source)?", "Whales are the largest animals of all oceans (not supported by a source). Why?"},
		"nested":                {"Why is [[1]2] no citation?", "Why is no citation?"},
	} {
		got := Check(c.in, sources, marker)
		if got.Text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got.Text, c.want)
		}
		if again := Check(got.Text, sources, marker); again.Text != got.Text || again.Removed != 0 {
			t.Errorf("%s: the second check gives %s", name, again.Text)
		}
	}
}

func TestACheckCountsItsSentences(t *testing.T) {
	got := Check("# Tunnels [4]\n\nThis report compares two tunnels. The Gotthard Base Tunnel is 57 km long [1][2]. The Seikan Tunnel opened in 1988. Whales are the largest animals of all oceans [1, 7].", sources, marker)
	got.Text = ""
	if want := (Checked{Cited: []int{1, 2}, Sentences: 4, Factual: 3, Supported: 2, Unsupported: 1, Removed: 4}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWithoutAMarkerNothingIsMarked(t *testing.T) {
	if got := Check("Whales are the largest animals of all oceans [1].", sources, ""); got.Text != "Whales are the largest animals of all oceans." || got.Unsupported != 1 {
		t.Errorf("%+v", got)
	}
}

func TestNumbersAreConsecutiveByFirstAppearance(t *testing.T) {
	text, order := Renumber("A fact [7]. Another [3][7]. `x[3]`\n\n# 3\n\nA third [12].", nil)
	if text != "A fact [1]. Another [2][1]. `x[3]`\n\n# 3\n\nA third [3]." || !slices.Equal(order, []int{7, 3, 12}) {
		t.Errorf("%s, %v", text, order)
	}
	text, order = Renumber("Next section [12], [5].", order)
	if text != "Next section [3], [4]." || !slices.Equal(order, []int{7, 3, 12, 5}) {
		t.Errorf("%s, %v", text, order)
	}
}

var sourceLibrary = libraryOf(sources)

// indentation is not compared: of several citations at the beginning of a line, the spaces between them go too.
var indentation = regexp.MustCompile(`(?m)^[ \t]+`)

// stripped returns a text without citations and markers, and what is left of nested ones.
func stripped(text string) string {
	for {
		text = withoutMarkers(text, marker)
		d := parseDocument(text)
		var edits []edit
		for _, c := range d.outside {
			edits = append(edits, edit{withBlanks(text, c.Span), ""})
		}
		for _, s := range d.sentences {
			for _, c := range s.citations {
				edits = append(edits, edit{withBlanks(text, c.Span), ""})
			}
		}
		if len(edits) == 0 {
			return text
		}
		text = applied(text, edits)
	}
}

// kindsOf returns the kinds of the blocks of a text that citations depend on. If a text without its citations has others, such as
// "[1]# x", its citations are not those of the checked text either.
func kindsOf(text string) (kinds []blockKind) {
	for _, b := range blocksOf(text) {
		if b.kind != numbered {
			kinds = append(kinds, b.kind)
		}
	}
	return kinds
}

// verify checks what must hold for every report.
func verify(t *testing.T, markdown string) {
	t.Helper()
	got := Check(markdown, sources, marker)
	if again := Check(markdown, sources, marker); !reflect.DeepEqual(again, got) {
		t.Fatalf("%q: a second check gives another result", markdown)
	}
	if a, b := indentation.ReplaceAllString(stripped(markdown), ""), indentation.ReplaceAllString(stripped(got.Text), ""); a != b && slices.Equal(kindsOf(withoutMarkers(markdown, marker)), kindsOf(stripped(markdown))) {
		t.Fatalf("the text has changed:\n%q\n%q\n%q", markdown, a, b)
	}
	d := parseDocument(withoutMarkers(got.Text, marker))
	l := sourceLibrary
	if len(d.outside) > 0 {
		t.Fatalf("%q has citations outside of sentences: %+v", got.Text, d.outside)
	}
	cited := map[int]bool{}
	for _, s := range d.sentences {
		for _, p := range d.partsOf(&s) {
			for _, c := range p.citations {
				for _, n := range c.numbers {
					cited[n] = true
					if !l.supports(n, statementOf(d.plain(&s))) && !l.supports(n, p.statement) {
						t.Fatalf("[%d] in %q is not supported", n, got.Text[s.Start:s.End])
					}
				}
			}
		}
	}
	if !slices.Equal(got.Cited, slices.Sorted(maps.Keys(cited))) {
		t.Fatalf("cited are %v, but the text has %v: %q", got.Cited, cited, got.Text)
	}
	if got.Supported+got.Unsupported != got.Factual || got.Factual > got.Sentences {
		t.Fatalf("%+v", got)
	}
}

// TestRandomReportsHold joins pieces at random, so that brackets, blocks, citations and markers meet in every order.
func TestRandomReportsHold(t *testing.T) {
	pieces := []string{
		"[1]", " [2]", "[1, 3]", "【1】", "[^2]", "¹", "<sup>4</sup>", "\\[1\\]", "[1](https://x.example)", "[", "]", "(", ")", "\n", "\n\n", "# ", "- ", "1. ", "> ", "| ", "|---|---|\n", "```\n", "`", "**", ". ", "。", "? ", ": ", "---\n", "===\n", "    ", "[1]: ",
		"The Gotthard Base Tunnel is 57 km long", "The Seikan Tunnel opened in March 1988", "Whales are large animals of all oceans", "北京市人口为2180万人", "東京都の人口は1400万人", "Экспорт вырос на 15 % в 2021 году", "did not ", "1", "57", marker, " " + marker, "[a](b)", "http://a.example/b.", "<b>", "!", "\t",
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var b strings.Builder
		for range 1 + r.IntN(25) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		verify(t, b.String())
	}
}

func TestHostileReportsAreCheckedInLinearTime(t *testing.T) {
	for name, text := range hostile(1 << 16) {
		c := checker{library: libraryOf(sources), marker: marker, adds: true}
		c.pass(text)
		if limit := 40*len(text) + 1000; c.work > limit || c.library.work > limit {
			t.Errorf("%q: %d steps and %d excerpts for %d bytes", name, c.work, c.library.work, len(text))
		}
	}
}

func TestManyExcerptsAreComparedByTheirWords(t *testing.T) {
	excerpts := map[int][]string{}
	for i := 1; i < 1000; i++ {
		excerpts[i] = []string{fmt.Sprintf("The station number %d of the railway has a platform of %d metres.", i, 100+i), "The railway opened a station in the town."}
	}
	var report strings.Builder
	for i := 1; i < 1000; i++ {
		fmt.Fprintf(&report, "The platform of railway station number %d is %d metres long. ", i, 100+i)
	}
	c := checker{library: libraryOf(excerpts), marker: marker, adds: true}
	c.pass(report.String())
	if c.library.work > 999*(8*maxPostings+maxCandidates*2) {
		t.Errorf("%d excerpts were compared", c.library.work)
	}
	if c.result.Factual != 999 || c.result.Supported < 900 {
		t.Errorf("%d of %d factual sentences are supported", c.result.Supported, c.result.Factual)
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"The Gotthard Base Tunnel is 57 km long [1, 2]. # H [1]\n\n- a [3]\n| a [1] | b |\n|---|---|\n| 57 km [1] | Gotthard Tunnel |\n",
		"[[1]2] [1](x) 【1†a】 ¹ \\[1\\] <sup>1</sup> [^1]: x\n[1]: y\n`[^1]` ``` x [1-3]",
		"北京市人口为2180万人[3]。東京都の人口は1400万人【8】。",
		"a (not supported by a source) b(not supported by a source)",
	} {
		f.Add(seed)
	}
	f.Fuzz(verify)
}
