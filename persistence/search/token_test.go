package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"turnstone/protocol/words"
)

// highlighted returns the highlighted texts of an excerpt.
func highlighted(t testing.TB, text, of string) (excerpt string, marked []string) {
	q := parse(of)
	if scoreOf(t, &q, []int{7}, text) == 0 {
		return "", nil
	}
	s := snippetOf(t, &q, []int{7}, text)
	runes := []rune(s.Text)
	for _, h := range s.Highlights {
		marked = append(marked, string(runes[h.Start:h.End]))
	}
	return s.Text, marked
}

func TestAQueryMatchesWordsPhrasesPrefixesAndExclusions(t *testing.T) {
	const text = "The quick brown fox, Café Zürich: 東京都の天気 はサーバー。학교에서 ประเทศไทย foo_bar C++"
	for query, want := range map[string][]string{
		"quick":              {"quick"},
		"qui":                {"quick"},
		"qui fox":            nil, // only the last word may be a prefix
		"fox qui":            {"quick", "fox"},
		"QUICK   brown":      {"quick", "brown"},
		`"quick brown"`:      {"quick brown"},
		`"brown quick"`:      nil,
		`"quick bro"`:        nil, // a phrase has whole words
		`“quick brown” fox`:  {"quick brown", "fox"},
		`"quick brown`:       {"quick brown"},
		"quick -lazy":        {"quick"},
		"quick -brown":       nil,
		"quick -brow":        {"quick"}, // an excluded word is whole
		`quick -"fox the"`:   {"quick"},
		`quick -"the quick"`: nil,
		"cafe":               {"Café"},
		"CAFÉ":               {"Café"},
		"zurich":             {"Zürich"},
		"東京":                 {"東京"},
		"京都":                 {"京都"},
		"東京都の天":              {"東京都の天"},
		"都京":                 nil,
		"京":                  {"京"},
		"気":                  {"気"},
		"サーバー":               {"サーバー"},
		"ｻｰﾊﾞｰ":              {"サーバー"},
		"학교":                 {"학교"},
		"서":                  {"서"},
		"ไทย":                {"ไทย"},
		"foo_bar":            {"foo_bar"},
		"bar_foo":            nil,
		"foo-b":              {"foo_bar"},
		"c":                  {"C"}, // one letter is no beginning of a word
		"c++":                {"C++"},
		"c+":                 {"C++"},
		"-c# quick":          {"quick"},
		"-.net quick":        {"quick"},
		"-c++ quick":         nil,
		"ca":                 {"Café"},
		"fox - -- \" ":       {"fox"},
		"--fox":              {"fox"},
	} {
		if _, got := highlighted(t, text, query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestAQueryWithoutWordsHasNoTerms(t *testing.T) {
	for _, query := range []string{"", " ", "-", "\"", "\"\"", "- -", "&|!():*", "-foo", "-\"foo bar\" -x", strings.Repeat("\"-", 80), "\x00", "\xed\xa0\x80"} {
		if q := parse(query); len(q.terms) != 0 {
			t.Errorf("%q: %+v", query, q.terms)
		}
	}
}

func TestWordsThatStandTogetherRankAboveWholeWordsAndTheseAboveBeginnings(t *testing.T) {
	for _, c := range []struct {
		text, query string
		score       int
	}{
		{"the brown and quick one", "quick bro", 1},
		{"the bro and quick one", "quick bro", 2},
		{"the quick brown", "quick bro", 3},
		{"the quick bro", "quick bro", 4},
		{"quick", "quick", 2},
		{"quickly", "quick", 1},
		{"東京", "東京", 1},
		{"東京タワー", "東京 タワー", 3},
	} {
		q := parse(c.query)
		if got := scoreOf(t, &q, []int{3}, c.text); got != c.score {
			t.Errorf("%s in %s: %d, want %d", c.query, c.text, got, c.score)
		}
	}
}

func TestAnExcerptIsShortAndShowsMostWords(t *testing.T) {
	text := strings.Repeat("alpha other words ", 40) + "and\n\n\talpha  near   omega " + strings.Repeat("more and more ", 40)
	excerpt, marked := highlighted(t, text, "omega alpha")
	if !slices.Contains(marked, "omega") || !slices.Contains(marked, "alpha") {
		t.Errorf("marked: %q", marked)
	}
	if n := utf8.RuneCountInString(excerpt); n > snippetRunes+2 {
		t.Errorf("the excerpt has %d characters", n)
	}
	if !strings.HasPrefix(excerpt, "…") || !strings.HasSuffix(excerpt, "…") || !strings.Contains(excerpt, "and alpha near omega more") {
		t.Errorf("the excerpt is %q", excerpt)
	}
}

func TestNoPhraseReachesFromOnePartIntoTheNext(t *testing.T) {
	tokens := tokensOf([]string{"one two", "three four"})
	for query, want := range map[string]bool{`"one two"`: true, `"two three"`: false, "two three": true, `"three four"`: true} {
		q := parse(query)
		if got := scoreOf(t, &q, []int{4}, "one two", "three four") > 0; got != want || q.score(tokens) > 0 != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	if got := tokens[2].Start; got != len("one two\n") {
		t.Errorf("the second part starts at %d", got)
	}
}

func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"c++ -.net fooBar", "quick -\"brown fox\" ja", "東京 都", "é\u0301\u0301 ﬁ", "\xff\xfe\x00", "-\"-\"-\"", "ไทย ក្រ"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q := parse(query)
		text = words.Normalize(text)
		tokens := words.Tokenize(text)
		length := utf8.RuneCountInString(text)
		for i, token := range tokens {
			if token.Start < 0 || token.Start >= token.End || token.Mid > token.End || token.End > length || token.Text == "" || i > 0 && (token.At < tokens[i-1].At || token.At == tokens[i-1].At && !tokens[i-1].Part) {
				t.Fatalf("%q: %+v", text, token)
			}
			if strings.ContainsAny(token.Text, "'\\ \x00:") {
				t.Fatalf("%q is written into a tsvector without escapes", token.Text)
			}
		}
		if len(q.terms) == 0 || q.score(tokens) == 0 {
			return
		}
		s := snippetOf(t, &q, []int{5}, text)
		if scoreOf(t, &q, []int{5}, text) != q.score(tokens) {
			t.Fatalf("%q in %q: the score in pieces differs", query, text)
		}
		end := 0
		for _, h := range s.Highlights {
			if h.Start < end || h.End < h.Start || h.End > utf8.RuneCountInString(s.Text) {
				t.Fatalf("%q in %q: %+v", query, text, s)
			}
			end = h.End
		}
		if len(s.Highlights) == 0 {
			t.Fatalf("%q in %q: nothing is marked in %q", query, text, s.Text)
		}
	})
}
