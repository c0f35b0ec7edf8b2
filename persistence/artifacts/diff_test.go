package artifacts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestADifferenceShowsWhatChanged(t *testing.T) {
	from := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n"
	to := "a\nb\nC\nd\ne\nf\ng\nh\ni\nnew\nj\nk\n"
	diff := compare(from, to)
	if diff.Added != 2 || diff.Removed != 1 || len(diff.Hunks) != 1 || diff.Truncated {
		t.Fatalf("%+v", diff)
	}
	if got, want := unified(diff, 1000), "@@\n a\n b\n-c\n+C\n d\n e\n f\n g\n h\n i\n+new\n j\n k\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	between := strings.Repeat("same\n", 10) + "once\n" + strings.Repeat("same\n", 9)
	far := compare("x\n"+between+"y", "X\n"+between+"Y")
	if len(far.Hunks) != 2 || far.Hunks[1].FromLine != 19 || far.Hunks[1].ToLine != 19 {
		t.Errorf("%+v", far)
	}
	if same := compare(from, from); len(same.Hunks) != 0 || same.Added != 0 || same.Truncated {
		t.Errorf("%+v", same)
	}
	if all := compare("", "a\nb"); all.Added != 2 || all.Hunks[0].FromLine != 1 {
		t.Errorf("%+v", all)
	}
}

// apply returns the text to that a difference leads to from a text.
func apply(from []string, diff *protocol.ArtifactDiff) []string {
	var to []string
	at := 0
	for _, hunk := range diff.Hunks {
		to = append(to, from[at:hunk.FromLine-1]...)
		at = hunk.FromLine - 1
		if len(to) != hunk.ToLine-1 {
			return nil
		}
		for _, line := range hunk.Lines {
			if line.Change != protocol.LineAdded {
				if from[at] != line.Text {
					return nil
				}
				at++
			}
			if line.Change != protocol.LineRemoved {
				to = append(to, line.Text)
			}
		}
	}
	return append(to, from[at:]...)
}

func TestADifferenceLeadsFromOneTextToTheOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		var a, b []string
		for range rng.IntN(30) {
			a = append(a, fmt.Sprint(rng.IntN(12)))
		}
		b = slices.Clone(a)
		for range rng.IntN(8) {
			at := rng.IntN(len(b) + 1)
			if rng.IntN(2) == 0 {
				b = slices.Insert(b, at, fmt.Sprint(rng.IntN(12)))
			} else if at < len(b) {
				b = slices.Delete(b, at, at+1)
			}
		}
		diff := compare(strings.Join(a, "\n"), strings.Join(b, "\n"))
		if got := apply(linesOf(strings.Join(a, "\n")), diff); !slices.Equal(got, linesOf(strings.Join(b, "\n"))) {
			t.Fatalf("%q to %q became %q: %+v", a, b, got, diff)
		}
	}
}

func TestADifferenceOfHugeTextsIsBounded(t *testing.T) {
	text := func(line func(int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < protocol.MaxArtifactBytes-100; i++ {
			b.WriteString(line(i) + "\n")
		}
		return b.String()
	}
	for name, texts := range map[string][2]string{
		"empty lines":  {text(func(int) string { return "" }), text(func(i int) string { return strings.Repeat(" ", i%2) })},
		"unique lines": {text(func(i int) string { return fmt.Sprintf("line %d of the first text", i) }), text(func(i int) string { return fmt.Sprintf("line %d of the second text", i) })},
		"reversed":     {text(func(i int) string { return fmt.Sprintf("%030d", i) }), text(func(i int) string { return fmt.Sprintf("%030d", 40_000-i) })},
		"one line":     {strings.Repeat("a", protocol.MaxArtifactBytes), strings.Repeat("b", protocol.MaxArtifactBytes)},
	} {
		diff := compare(texts[0], texts[1])
		lines := 0
		for _, hunk := range diff.Hunks {
			lines += len(hunk.Lines)
		}
		if lines > shownLines || !diff.Truncated || len(unified(diff, 4096)) > 4200 {
			t.Errorf("%s: %d lines, truncated %v", name, lines, diff.Truncated)
		}
	}
}

func TestATableIsCSVInWhichFormulasAreText(t *testing.T) {
	for in, want := range map[string]string{
		"a,b\r\n1,2\r\n":                 "a,b\n1,2\n",
		"\ufeffa;b":                      "a;b\n",
		"\"x, y\",\"say \"\"hi\"\"\"":    "\"x, y\",\"say \"\"hi\"\"\"\n",
		"\"two\nlines\",z":               "\"two\nlines\",z\n",
		"'=1+1,'-2x,'hello,-5,=A1":       "=1+1,-2x,'hello,-5,=A1\n",
		"":                               "",
		"名前,値\né,ü":                      "名前,値\né,ü\n",
		"a\n\"\"\nb":                     "a\n\"\"\nb\n",
		"=HYPERLINK(\"http://x\",\"a\")": "",
	} {
		got, err := parseTable(in)
		if want == "" && in != "" {
			if err == nil {
				t.Errorf("%q became %q", in, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q became %q, %v; want %q", in, got, err, want)
		}
	}
	stored := "=1+1,+x,-5,-5%,+1.5,@SUM(A1),\"\tx\",-1-1,plain,-,1e5\n"
	guarded, err := GuardedTable(stored)
	if want := "'=1+1,'+x,-5,-5%,+1.5,'@SUM(A1),'\tx,'-1-1,plain,'-,1e5\r\n"; err != nil || guarded != want {
		t.Errorf("%q, %v", guarded, err)
	}
	if back, err := parseTable(guarded); err != nil || back != stored {
		t.Errorf("%q came back as %q, %v", stored, back, err)
	}
	for cell, guarded := range map[string]string{
		"＝1+1": "'＝1+1", "＋x": "'＋x", "－x": "'－x", "＠SUM(A1)": "'＠SUM(A1)", "﹦1": "'﹦1",
		"\u00a0=1+1": "'\u00a0=1+1", "\u3000＝1": "'\u3000＝1", " =1": "' =1", "\u200b\ufeff=1": "'\u200b\ufeff=1", "\n=1": "\"'\n=1\"",
		"\u00a0-5": "\"\u00a0-5\"", "\u00a0x": "\"\u00a0x\"", "a\rb": "\"a\rb\"", "a\r": "\"a\r\"", "\ra": "\"'\ra\"", "a\r\rb\nc": "\"a\r\rb\nc\"", `"`: `""""`,
	} {
		stored, err := parseTable("x\n\"" + strings.ReplaceAll(cell, `"`, `""`) + "\"\n")
		if err != nil {
			t.Fatal(err)
		}
		got, err := GuardedTable(stored)
		if err != nil || got != "x\r\n"+guarded+"\r\n" {
			t.Errorf("%q is sent as %q, %v", cell, got, err)
		}
		if back, err := parseTable(got); err != nil || back != stored {
			t.Errorf("%q came back as %q, %v", stored, back, err)
		}
	}
	for _, wrong := range []string{"a,b\n1", "\"a", "a\"b", strings.Repeat("x,", maxColumns) + "x"} {
		if got, err := parseTable(wrong); err == nil {
			t.Errorf("%.40q became %.40q", wrong, got)
		}
	}
}
