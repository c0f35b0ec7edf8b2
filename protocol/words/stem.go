package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	snowball "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
)

const (
	stemMark     = "=" // begins the token of a stem, so that no word and no prefix of one equals it
	compoundMark = "<" // begins the token of the end of a German word, reversed

	minStemmed  = 4  // characters of a word that is stemmed
	maxStemmed  = 40 // longer ones are names or no words
	minStem     = 3  // characters of a stem
	minHead     = 4  // characters of a German compound before the part that is found
	minTail     = 5  // and of that part
	cachedStems = 4096
)

// stemmers reduce a word in lower case to its stem.
var stemmers = map[Language]func(*snowball.Env) bool{
	English: english.Stem, German: german.Stem, French: french.Stem, Spanish: spanish.Stem, Italian: italian.Stem,
	Portuguese: portuguese.Stem, Dutch: dutch.Stem, Swedish: swedish.Stem, Russian: russian.Stem, Arabic: arabic.Stem,
}

// stem returns the folded stem of a word in lower case; empty if it has none that is long enough.
func stem(of Language, word string) string {
	env := snowball.NewEnv(word)
	stemmers[of](env)
	folded := foldWord(env.Current())
	if utf8.RuneCountInString(folded) < minStem {
		return ""
	}
	return folded
}

func foldWord(word string) string {
	var folded []byte
	for _, c := range word {
		folded = Fold(folded, c)
	}
	return string(folded)
}

// Stems makes the tokens of other forms of the words of a text: their stems, and the ends of German compounds. They are parts of the
// word (Token.Part), and their texts equal no word. Texts are indexed with them, and Forms returns those that a query has to look for.
type Stems struct {
	Language Language
	known    map[string][]string
}

// of returns the texts of the additional tokens of a word: raw in lower case, and folded.
func (s *Stems) of(raw, folded []byte) []string {
	if s.Language == NoLanguage {
		return nil
	}
	if texts, known := s.known[string(raw)]; known {
		return texts
	}
	word, texts := string(raw), []string(nil)
	if n := utf8.RuneCount(raw); n >= minStemmed && n <= maxStemmed {
		stemmed := stem(s.Language, word)
		if stemmed != "" && stemmed != string(folded) {
			texts = append(texts, stemMark+stemmed)
		}
		if end := []rune(stemmed); s.Language == German && len(end) >= minHead+minTail {
			texts = append(texts, compoundMark+reversed(end[minHead:]))
		}
	}
	if s.known == nil || len(s.known) >= cachedStems {
		s.known = map[string][]string{}
	}
	s.known[word] = texts
	return texts
}

func reversed(word []rune) string {
	word = slices.Clone(word)
	slices.Reverse(word)
	return string(word)
}

// Form is a text by which another form of a word is found.
type Form struct {
	Text   string
	Prefix bool // tokens that begin with it are those of other forms, too
}

// IsForm reports whether a token can only be one of Stems.
func IsForm(text string) bool {
	return strings.HasPrefix(text, stemMark) || strings.HasPrefix(text, compoundMark)
}

// Forms returns by which texts the other forms of a word of a query are found: its spellings with and without umlauts, its stems in
// the languages that a text may have, and the German compounds that end with it. A word that has the sign of no letter has none.
func Forms(word string, languages []Language) []Form {
	word = strings.ToLower(word)
	if n := utf8.RuneCountInString(word); n < minStem || n > maxStemmed || strings.ContainsFunc(word, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsMark(c) }) {
		return nil
	}
	folded := foldWord(word)
	var forms []Form
	add := func(form Form) {
		if form.Text != folded && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	spellings := append([]string{word}, respelled(word)...)
	for _, spelling := range spellings[1:] {
		add(Form{Text: foldWord(spelling)})
	}
	for _, language := range languages {
		if language == NoLanguage || !language.writes(word) {
			continue
		}
		for _, spelling := range append(spellings, folded) {
			stemmed := stem(language, spelling)
			if stemmed == "" {
				continue
			}
			add(Form{Text: stemmed})
			add(Form{Text: stemMark + stemmed})
			if end := []rune(stemmed); language == German && len(end) >= minTail {
				add(Form{Text: compoundMark + reversed(end), Prefix: true})
			}
		}
	}
	return forms
}

// The letters that are also written with two: Müller and Mueller. Texts are folded to one of them, so only queries need both.
var (
	umlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ø", "oe", "å", "aa")
	digraph = strings.NewReplacer("ae", "ä", "oe", "ö", "ue", "ü", "aa", "å")
)

// respelled returns the spellings of a word with and without umlauts.
func respelled(word string) (spellings []string) {
	for _, replacer := range []*strings.Replacer{umlauts, digraph} {
		if spelling := replacer.Replace(word); spelling != word {
			spellings = append(spellings, spelling)
		}
	}
	return spellings
}
