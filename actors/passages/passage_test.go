package passages

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"turnstone/actors/passages/passagestest"
	"turnstone/protocol"
)

func TestPassagesCoverTheText(t *testing.T) {
	paged, blocks := passagestest.Pages(5, func(page int) string { return strings.Repeat(fmt.Sprintf("Page %d has a sentence. ", page), 100) })
	for name, c := range map[string]struct {
		text   string
		blocks []protocol.TextBlock
	}{
		"empty":             {"", nil},
		"short":             {"Tides", nil},
		"pages":             {paged, blocks},
		"a gap after pages": {paged + strings.Repeat("more ", 1000), blocks},
		"one long word":     {strings.Repeat("x", 10_000), nil},
		"Japanese":          {strings.Repeat("潮汐は海面の昇降である。", 500), nil},
		"four-byte letters": {strings.Repeat("𝔘", 3000), nil},
	} {
		end := 0
		for _, p := range Split(c.text, c.blocks) {
			if p.Start != end || p.End <= p.Start || p.End-p.Start > MaxBytes || !utf8.ValidString(c.text[p.Start:p.End]) {
				t.Fatalf("%s: a passage from %d to %d after %d", name, p.Start, p.End, end)
			}
			if p.Block >= 0 && (p.Start < c.blocks[p.Block].Offset || p.End > c.blocks[p.Block].Offset+c.blocks[p.Block].Length) {
				t.Fatalf("%s: the passage from %d to %d is not within its page", name, p.Start, p.End)
			}
			end = p.End
		}
		if end != len(c.text) {
			t.Errorf("%s: %d of %d bytes are in passages", name, end, len(c.text))
		}
	}
}

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestThePassagesThatAnswerTheQuestionAreChosen(t *testing.T) {
	filler := strings.Repeat("The harbour master keeps the book of the harbour and the ships of the season. ", 20)
	text, blocks := passagestest.Pages(300, func(page int) string {
		switch page {
		case 217:
			return filler + "\n\nThe spring tide of Saint-Malo rises by twelve metres.\n\n" + filler
		case 90:
			return filler + "\n\n潮汐は十二メートル上昇する。\n\n" + filler
		case 91:
			return filler + "\n\nДвенадцать метров ПРИЛИВА.\n\n" + filler
		case 92:
			return filler + "\n\nLa mare\u0301e monte. L’élan, l'ÉLAN.\n\n" + filler
		case 93:
			return filler + "\n\n바닷물의 높이가 올라갑니다.\n\n" + filler
		case 94:
			return filler + "\n\nİstanbul kıyısı\n\n" + filler
		}
		return filler
	})
	for question, page := range map[string]int{
		"How high is the tide in saint-malo?": 217,
		"潮汐は何メートル？":                           90,
		"Какая высота прилива?":               91,
		"maree elan":      92,
		"바닷물이 얼마나 높아요?":   93,
		"istanbul kiyisi": 94,
	} {
		chosen := Choose(text, blocks, question, 3000)
		size := 0
		for _, p := range chosen {
			size += p.End - p.Start
		}
		if size > 3000 || len(chosen) == 0 || !slices.IsSortedFunc(chosen, func(a, b Passage) int { return a.Start - b.Start }) {
			t.Errorf("%s: %d passages with %d bytes", question, len(chosen), size)
		}
		if !slices.ContainsFunc(chosen, func(p Passage) bool { return blocks[p.Block].Page == page }) {
			t.Errorf("%s: page %d was not chosen", question, page)
		}
	}
	for _, question := range []string{"", "?!", "xyzzy plugh"} {
		if chosen := Choose(text, blocks, question, 3000); len(chosen) == 0 || chosen[0].Start != 0 {
			t.Errorf("%q: the text does not start at its beginning: %+v", question, chosen)
		}
	}
	var long strings.Builder
	for word := range 20_000 {
		fmt.Fprintf(&long, "w%d ", word)
	}
	if used := allocated(func() { Choose(text, blocks, long.String()+"tide", 3000) }); used > 50<<20 {
		t.Errorf("a question of 20,000 words took %d MiB", used>>20)
	}
	if chosen := Choose(text, blocks, "tide", 10); len(chosen) != 0 {
		t.Errorf("in 10 bytes: %+v", chosen)
	}
}

// BenchmarkRank ranks the passages of 1 MiB.
func BenchmarkRank(b *testing.B) {
	for name, c := range map[string]struct{ sentence, question string }{
		"English":  {"The harbour master keeps the book of the harbour, whatever the tide. ", "How high is the spring tide?"},
		"Japanese": {"潮汐は海面の昇降である。", "潮汐は何メートル？"},
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(c.sentence, (1<<20)/len(c.sentence))
			all := Split(text, nil)
			for b.Loop() {
				Rank(all, text, c.question)
			}
		})
	}
}
