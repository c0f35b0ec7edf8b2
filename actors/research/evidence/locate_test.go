package evidence

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

var page = strings.ReplaceAll(`# Tides of Saint-Malo

The **spring tide** of [Saint-Malo](https://example.com/saint-malo "a town") rises by as much as 12 metres.[3] It’s one of the
highest in Europe — only the Bay of Fundy has more. The speci~fic cause is the shape of the chan-
nel. The ﬁrst tidal power station was opened in 1966. Another sentence follows here, which nobody quotes. The station still runs today.

潮汐は海面の昇降である。サン・マロでは１２メートル上昇する。
Прилив достигает двенадцати метров в районе Сен-Мало.
`, "~", "\u00ad")

func TestQuotesAreLocated(t *testing.T) {
	for quote, want := range map[string]string{
		"The spring tide of Saint-Malo rises by as much as 12 metres.":                        "The **spring tide** of [Saint-Malo](https://example.com/saint-malo \"a town\") rises by as much as 12 metres.",
		"\"it's one of the highest in Europe - only the Bay of Fundy has more\"":              "It’s one of the\nhighest in Europe — only the Bay of Fundy has more.",
		"THE SPECIFIC CAUSE is the shape of the channel":                                      "The speci\u00adfic cause is the shape of the chan-\nnel.",
		"The first tidal power station was opened in 1966":                                    "The ﬁrst tidal power station was opened in 1966.",
		"The first tidal power station ... The station still runs today.":                     "The ﬁrst tidal power station was opened in 1966. Another sentence follows here, which nobody quotes. The station still runs today.",
		"the first tidal power station […] station still runs":                                "The ﬁrst tidal power station was opened in 1966. Another sentence follows here, which nobody quotes. The station still runs",
		"rises by as much as 12 metres. It's one of the highest in Europe":                    "rises by as much as 12 metres.[3] It’s one of the\nhighest in Europe",
		"Notably, another sentence follows here which nobody quotes. The station still runs.": "Another sentence follows here, which nobody quotes. The station still runs",
		"サン・マロでは12メートル上昇する":                                                                   "サン・マロでは１２メートル上昇する。",
		"潮汐は海面の昇降である":                                                                         "潮汐は海面の昇降である。",
		"прилив достигает двенадцати метров":                                                  "Прилив достигает двенадцати метров",
	} {
		if span, ok := Locate(page, quote); !ok || page[span.Start:span.End] != want {
			t.Errorf("%q: %q, %t", quote, page[span.Start:span.End], ok)
		}
	}
}

func TestInventedQuotesAreNotLocated(t *testing.T) {
	for _, quote := range []string{
		"", "…", "tide", "the tide", "of the", "海面",
		"The neap tide of Brest falls by as much as 9 metres.",
		"The station still runs today ... The first tidal power station was opened",
		"The first tidal power station was closed by the government in 1978 after many protests",
		"highest power sentence metres channel today Europe shape",
		"https://example.com/saint-malo",
		"The first tidal power station ... of the moon",
		"潮汐は月の引力によって生じる現象である",
	} {
		if span, ok := Locate(page, quote); ok {
			t.Errorf("%q: %q", quote, page[span.Start:span.End])
		}
	}
}

func TestExcerptsAreShort(t *testing.T) {
	long := strings.Repeat("Every sentence of this page has words of its own, such as these. ", 100)
	span, ok := Locate(long, long)
	if !ok || span.Start != 0 || span.End-span.Start > maxExcerpt || span.End < maxExcerpt/2 {
		t.Errorf("%+v, %t", span, ok)
	}
	apart := "The first words of the page are here. " + long + "The last words of the page are here."
	if span, ok := Locate(apart, "The first words of the page ... the last words of the page"); ok {
		t.Errorf("an excerpt from %d to %d", span.Start, span.End)
	}
}

// TestASpanHasTheWordsOfItsQuote changes quotes at random.
func TestASpanHasTheWordsOfItsQuote(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	vocabulary := strings.Fields("tide harbour ship season light moon water north south metre year book wind rain stone bridge river 12 1966 潮 海 面 昇 Прилив метров")
	located := 0
	for range 3000 {
		words := make([]string, 20+r.IntN(200))
		for i := range words {
			words[i] = vocabulary[r.IntN(len(vocabulary))]
		}
		from := r.IntN(len(words) - 15)
		quote := append([]string(nil), words[from:from+4+r.IntN(11)]...)
		for range r.IntN(4) {
			quote[r.IntN(len(quote))] = vocabulary[r.IntN(len(vocabulary))]
		}
		text, quoted := strings.Join(words, " "), strings.Join(quote, " ")
		span, ok := Locate(text, quoted)
		if !ok {
			continue
		}
		located++
		a, b := tokensOf(text[span.Start:span.End]), tokensOf(quoted)
		if n := commonWords(a, b); float64(n) < minMatched*float64(len(b)) || float64(n) < minMatched*float64(len(a)) {
			t.Fatalf("%q was located as %q", quoted, text[span.Start:span.End])
		}
	}
	if located < 1000 {
		t.Errorf("only %d quotes were located", located)
	}
}

// commonWords returns the length of the longest common subsequence.
func commonWords(a, b []token) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x.text == y.text {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func TestLocatingTakesLinearTime(t *testing.T) {
	for name, text := range map[string]string{
		"one word": strings.Repeat("tide ", 1<<15), "brackets": strings.Repeat("](a", 1<<15), "tags": strings.Repeat("<a", 1<<15), "two words": strings.Repeat("tide moon ", 1<<14),
	} {
		for _, quote := range []string{"tide moon tide water tide moon", strings.Repeat("tide ", 200) + "moon", strings.Repeat("tide ... ", 50) + "moon"} {
			l := newLocator(text, quote)
			if _, ok := l.find(l.quote); !ok && len(l.pieces) > 1 {
				l.findPieces()
			}
			if l.work > 8*len(text) {
				t.Errorf("%s: %d words were compared", name, l.work)
			}
		}
	}
}

func TestPassagesAnswerTheQuestion(t *testing.T) {
	filler := strings.Repeat("The harbour master keeps the book of the harbour. ", 100)
	text := filler + "\n\nThe spring tide rises by twelve metres.\n\n" + filler
	spans := Passages(text, "How high is the spring tide?", 2500)
	size, found := 0, false
	for _, s := range spans {
		size += s.End - s.Start
		found = found || strings.Contains(text[s.Start:s.End], "twelve metres")
	}
	if !found || size > 2500 {
		t.Errorf("%+v", spans)
	}
}

func FuzzLocate(f *testing.F) {
	f.Add(page, "The spring tide of Saint-Malo … rises")
	f.Add("a[b](c)<d>e-\nf", "a b e f")
	f.Fuzz(func(t *testing.T, text, quote string) {
		span, ok := Locate(text, quote)
		if ok && (span.Start < 0 || span.Start >= span.End || span.End > len(text) || span.End-span.Start > maxExcerpt) {
			t.Errorf("%+v of %d bytes", span, len(text))
		}
		if ok && utf8.ValidString(text) && !utf8.ValidString(text[span.Start:span.End]) {
			t.Errorf("%+v cuts a character", span)
		}
	})
}

func tokensOf(text string) (all []token) {
	eachToken(text, false, func(t token) bool {
		all = append(all, t)
		return true
	})
	return all
}
