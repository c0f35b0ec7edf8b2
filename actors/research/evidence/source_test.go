package evidence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// article returns a text of some hundred words that depend on a seed.
func article(seed uint64, words int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for i := range words {
		if i%40 == 7 {
			fmt.Fprintf(&b, "%d ", 1000+r.IntN(9000))
			continue
		}
		fmt.Fprintf(&b, "w%s ", strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(3))+string(rune('a'+r.IntN(26))))
	}
	return b.String()
}

func TestDuplicatesAreOneSource(t *testing.T) {
	text := article(1, 400)
	paper := []Candidate{
		{URL: "https://arxiv.org/abs/1706.03762v5", Title: "Attention Is All You Need", Author: "Vaswani, Ashish; Shazeer, Noam"},
		{URL: "https://arxiv.org/pdf/1706.03762.pdf"},
		{URL: "https://papers.example/attention", Title: "Attention is all you need", Author: "Ashish Vaswani and Noam Shazeer", DOI: "10.5555/3295222"},
		{URL: "https://doi.org/10.5555/3295222", Text: text},
		{URL: "https://mirror.example/p?id=9", Text: "Another header of the mirror. " + text},
		{URL: "https://other.example/copy", DOI: "doi:10.48550/arXiv.1706.03762"},
		{URL: "https://papers.example/view?article=7", Canonical: "https://papers.example/attention"},
	}
	others := []Candidate{
		{URL: "https://arxiv.org/abs/1706.03763", Title: "Home", Author: "Ashish Vaswani"},
		{URL: "https://one.example/", Title: "Home", Author: "Ashish Vaswani"},
		{URL: "https://two.example/", Title: "Attention Is All You Need", Author: "Someone Else"},
		{URL: "https://three.example/", Title: "Attention Is All You Need"},
		{URL: "https://four.example/", Text: article(2, 400)},
		{URL: "https://five.example/", Text: "A short text. Page not found."},
		{URL: "https://six.example/", Text: "A short text. Page not there."},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		all := append(slices.Clone(paper), others...)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var s Sources
		index := make([]int, len(all))
		for i, c := range all {
			index[i], _ = s.Add(c)
		}
		of := map[string]int{}
		for i, c := range all {
			of[c.URL] = s.Find(index[i])
		}
		for _, c := range paper {
			if of[c.URL] != of[paper[0].URL] {
				t.Fatalf("%s is another source than %s", c.URL, paper[0].URL)
			}
		}
		if s.Len() != 1+len(others) {
			t.Fatalf("%d sources: %v", s.Len(), of)
		}
	}
}

func TestTheSameAddsGiveTheSameSet(t *testing.T) {
	var a, b Sources
	for i := range 500 {
		c := Candidate{URL: fmt.Sprintf("https://example.com/%d", i%300), Text: article(uint64(i%200), 80)}
		indexA, mergedA := a.Add(c)
		indexB, mergedB := b.Add(c)
		if indexA != indexB || mergedA != mergedB {
			t.Fatalf("candidate %d is source %d and source %d", i, indexA, indexB)
		}
	}
}

func TestTenThousandCandidatesAreAddedQuickly(t *testing.T) {
	var s Sources
	base := article(1<<20, 120)
	for i := range 10_000 {
		text := article(uint64(i), 120)
		if i%2 == 0 {
			text = base + fmt.Sprintf("end %d", i) // all near, but none equal
		}
		s.Add(Candidate{URL: fmt.Sprintf("https://example.com/%d", i), Text: text})
	}
	if s.Len() != 5001 {
		t.Errorf("%d sources, want 5001", s.Len())
	}
	if n := len(s.prints); n > 10_000 {
		t.Errorf("%d fingerprints", n)
	}
}

// TestFingerprintRates measures how far the fingerprints of copies and of other pages are apart.
func TestFingerprintRates(t *testing.T) {
	copies, others := 0, 0
	const n = 500
	for i := range n {
		text := article(uint64(i), 300)
		fields := strings.Fields(text)
		header := "Skip to content Menu Search Subscribe " + text + " Share this page Contact Imprint"
		if Near(FingerprintOf(text), FingerprintOf(header)) {
			copies++
		}
		r := rand.New(rand.NewPCG(uint64(i), 1))
		for j := range fields { // another page from the same template: every fourth number and some words differ
			if r.IntN(4) == 0 {
				fields[j] = fmt.Sprintf("x%d", r.IntN(1000))
			}
		}
		if Near(FingerprintOf(text), FingerprintOf(strings.Join(fields, " "))) {
			others++
		}
	}
	t.Logf("%d of %d copies with another header are near, and %d of %d pages with other words in a quarter of the places", copies, n, others, n)
	if copies < n*98/100 || others > n/200 {
		t.Errorf("%d copies and %d other pages are near", copies, others)
	}
}

func TestPagesThatContradictEachOtherAreNotNear(t *testing.T) {
	near := 0
	for i := range 200 {
		text := article(uint64(i), 200) // it has 5 numbers
		r := rand.New(rand.NewPCG(uint64(i), 5))
		fields := strings.Fields(text)
		for j, field := range fields {
			if isDigit(field[0]) && j%80 == 7 {
				fields[j] = fmt.Sprint(1000 + r.IntN(9000))
			}
		}
		if Near(FingerprintOf(text), FingerprintOf(strings.Join(fields, " "))) {
			near++
		}
	}
	if near > 4 {
		t.Errorf("%d of 200 pages are near to a page with other numbers", near)
	}
}

func TestFingerprintsOfTexts(t *testing.T) {
	chinese := strings.Repeat("潮汐是海面的升降。", 3) + "圣马洛的大潮上升十二米，是欧洲最高的潮汐之一。第一座潮汐电站于一九六六年建成，至今仍在运行。人们常来这里参观海港和城墙。"
	for name, c := range map[string]struct {
		a, b string
		near bool
	}{
		"case and spaces":    {"The  Tide, rises.", "the tide rises", true},
		"short":              {"The tide rises by 12 metres.", "The tide rises by 13 metres.", false},
		"Chinese":            {chinese, "首页 " + chinese, true},
		"empty":              {"", "", false},
		"no words":           {"...", "...", false},
		"long and unrelated": {article(1, 100), article(2, 100), false},
	} {
		if got := Near(FingerprintOf(c.a), FingerprintOf(c.b)); got != c.near {
			t.Errorf("%s: near is %t", name, got)
		}
	}
}
