package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Language is a language whose words have stems.
type Language uint8

// The languages of Stems.
const (
	NoLanguage Language = iota
	English
	German
	French
	Spanish
	Italian
	Portuguese
	Dutch
	Swedish
	Russian
	Arabic
)

// Languages are all of them.
var Languages = []Language{English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Russian, Arabic}

// SampleBytes is how much of a text is read to detect its language.
const SampleBytes = 2 << 10

// frequent are the most frequent words of the languages with the Latin alphabet.
var frequent = map[Language]string{
	English:    "the and of to is in that it was for are with this you have not be what how from on at by we they which can i do does my",
	German:     "der die das und ist nicht ein eine einen einer mit zu den von für auf dem des sich auch wie werden wird wir ich im bei oder sind es nach zum zur",
	French:     "le la les des est et une un dans que qui pour pas sur avec vous nous sont au aux ce cette il elle du de en ne je mais ou",
	Spanish:    "el la los las de que y en un una es por con para no se del como está al lo más su pero sus son muy",
	Italian:    "il la di che è e un una per non con sono del della gli le anche come nel alla dei delle si da lo ma",
	Portuguese: "o a os as de que e do da em um uma não para com é no na por mais dos das se ao como mas são",
	Dutch:      "de het een en van is niet dat op te zijn voor met ik wij je ook aan bij maar naar er om heeft worden deze",
	Swedish:    "och att det är som en på av för med den inte jag vi har till ett om var de från men kan ska eller",
}

// votes are the languages of each frequent word.
var votes = func() map[string][]Language {
	byWord := map[string][]Language{}
	for _, language := range Languages {
		for _, word := range strings.Fields(frequent[language]) {
			byWord[word] = append(byWord[word], language)
		}
	}
	return byWord
}()

// letters of other languages with the alphabets of Russian and Arabic.
const (
	notRussian = "іїєґўђјљњћџѓќѕ"
	notArabic  = "پچژگیکےہھٹڈڑں"
)

// Detect returns the language of a text by its beginning. certain: the text has words or letters of that language; otherwise it is the
// one that texts with its alphabet mostly have.
func Detect(text string) (language Language, certain bool) {
	var latin, cyrillic, arabic, other int
	for i, c := range text {
		if i >= SampleBytes {
			text = text[:i]
			break
		}
		switch {
		case c < 0x80:
			if 'a' <= c|0x20 && c|0x20 <= 'z' {
				latin++
			}
		case strings.ContainsRune(notRussian, c) || strings.ContainsRune(notArabic, c):
			other += 20 // one such letter in a sentence is enough
		case unicode.Is(unicode.Latin, c):
			latin++
		case unicode.Is(unicode.Cyrillic, c):
			cyrillic++
		case unicode.Is(unicode.Arabic, c):
			arabic++
		}
	}
	switch {
	case latin == 0 && cyrillic == 0 && arabic == 0:
		return NoLanguage, false
	case latin >= cyrillic && latin >= arabic:
		return detectLatin(text)
	case other > max(cyrillic, arabic):
		return NoLanguage, true
	case cyrillic >= arabic:
		return Russian, true
	}
	return Arabic, true
}

func detectLatin(text string) (language Language, certain bool) {
	counts := [Arabic + 1]int{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) }) {
		for _, of := range votes[word] {
			counts[of]++
		}
	}
	best := English
	for _, of := range Languages {
		if counts[of] > counts[best] {
			best = of
		}
	}
	for _, of := range Languages {
		if of != best && counts[of] == counts[best] {
			return English, false // no word distinguishes them
		}
	}
	return best, true
}

// QueryLanguages returns the languages of the texts that a query may be about: its own, if it has words that tell it.
func QueryLanguages(query string) []Language {
	if language, certain := Detect(query); certain {
		return []Language{language}
	}
	return Languages
}

// writes reports whether a language is written with the alphabet of a word.
func (l Language) writes(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case unicode.Is(unicode.Latin, first):
		return l < Russian
	case unicode.Is(unicode.Cyrillic, first):
		return l == Russian
	}
	return l == Arabic && unicode.Is(unicode.Arabic, first)
}
