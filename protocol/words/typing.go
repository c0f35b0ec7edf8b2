package words

import (
	"slices"
	"unicode"
)

const (
	minCorrected = 5  // letters of a word in which a mistake is looked for: shorter ones are one letter away from too many others
	maxCorrected = 20 // and at most
)

// alphabets are the letters of scripts, in the form in which texts are compared.
var alphabets = []struct {
	script  *unicode.RangeTable
	letters string
}{
	{unicode.Latin, "abcdefghijklmnopqrstuvwxyz"},
	{unicode.Cyrillic, "абвгдежзиклмнопрстуфхцчшщъыьэюяієґ"},
	{unicode.Greek, "αβγδεζηθικλμνξοπρστυφχψω"},
	{unicode.Arabic, "ابتثجحخدذرزسشصضطظعغفقكلمنهويءئؤپچژگ"},
	{unicode.Hebrew, "אבגדהוזחטיכלמנסעפצקרשתםןץףך"},
}

// Corrections returns the words from which a folded word differs by one mistake: two letters that are exchanged, one too many, one that
// is missing, and one that is another. The more frequent kinds of mistakes come first. Words that are short or long, or have anything
// but letters of one alphabet, have none.
func Corrections(word string) []string {
	letters := []rune(word)
	alphabet := alphabetOf(letters)
	if len(letters) < minCorrected || len(letters) > maxCorrected || alphabet == "" {
		return nil
	}
	var corrections []string
	seen := map[string]bool{word: true}
	add := func(parts ...[]rune) {
		if correction := string(slices.Concat(parts...)); !seen[correction] {
			seen[correction] = true
			corrections = append(corrections, correction)
		}
	}
	for i := range len(letters) - 1 {
		add(letters[:i], []rune{letters[i+1], letters[i]}, letters[i+2:])
	}
	for i := range letters {
		add(letters[:i], letters[i+1:])
	}
	for i := range len(letters) + 1 {
		for _, c := range alphabet {
			add(letters[:i], []rune{c}, letters[i:])
		}
	}
	for i := range letters {
		for _, c := range alphabet {
			add(letters[:i], []rune{c}, letters[i+1:])
		}
	}
	return corrections
}

// alphabetOf returns the alphabet of a word; empty: it is not written in one of alphabets.
func alphabetOf(word []rune) string {
	for _, a := range alphabets {
		if !slices.ContainsFunc(word, func(c rune) bool { return !unicode.Is(a.script, c) }) {
			return a.letters
		}
	}
	return ""
}
