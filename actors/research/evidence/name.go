package evidence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// titles are words in upper case before names, which are left out of many texts, and words in upper case that are no names.
var titles = foldedSet("president|prime|minister|chancellor|king|queen|sir|professor|prof|dr|mr|mrs|ms|ceo|chief|director|senator|judge|general|pope|prince|princess|lord|lady|monday|tuesday|wednesday|thursday|friday|saturday|sunday|internet|earth|today" +
	"|präsident|président|ministre|presidente|ministro|rey|reina|roi|reine|президент|министр|king")

// collectName adds a word to the current sequence of names, or ends it. The first word of a sentence may be a name only together
// with the next one, or if it is written like no other word.
func (b *builder) collectName(t token, stop bool) {
	raw := b.text[t.start:t.end]
	special := isSpecial(raw)
	if special || unicode.IsUpper(firstRune(raw)) {
		b.known[t.text] = true
	}
	capital := unicode.IsUpper(firstRune(raw)) && (b.language == "" || b.language.marksNames()) && !stop && !titles[t.text] && utf8.RuneCountInString(raw) > 1
	if !special && !capital {
		b.endName()
		return
	}
	if len(b.name) == 0 {
		b.nameAtStart = b.sentence && !special
	}
	b.name = append(b.name, t.text)
}

// isSpecial reports whether a word is written as names are in every language: NASA, iPhone, H2O.
func isSpecial(raw string) bool {
	upper, lower, digits := 0, 0, 0
	for i, c := range raw {
		switch {
		case unicode.IsUpper(c) && i > 0:
			upper += 2
		case unicode.IsUpper(c):
			upper++
		case unicode.IsLower(c):
			lower++
		case unicode.IsDigit(c):
			digits++
		}
	}
	return upper >= 2 || upper == 1 && digits > 0
}

func (b *builder) endName() {
	if len(b.name) > 1 || len(b.name) == 1 && !b.nameAtStart {
		b.names = append(b.names, b.name)
		b.nameClauses = append(b.nameClauses, len(b.clauses))
	}
	b.name = nil
}

// hasNames reports whether a statement has all names of another one.
func (e *statement) hasNames(names [][]string) bool {
	for _, name := range names {
		if !e.hasName(name) {
			return false
		}
	}
	return true
}

// hasName reports whether a statement has a name. A person may be named by the last name only. An abbreviation of the initials
// counts as the name.
func (e *statement) hasName(name []string) bool {
	missing := slices.ContainsFunc(name, func(word string) bool { return !e.hasNameWord(word) })
	if !missing {
		return true
	}
	initials := initialsOf(name)
	for _, other := range e.names {
		switch {
		case len(name) > 1 && len(other) == 1 && (other[0] == initials || sameName(other[0], name[len(name)-1])):
			return true
		case len(name) == 1 && len(other) > 1 && initialsOf(other) == name[0]:
			return true
		}
	}
	return false
}

func (e *statement) hasNameWord(word string) bool {
	if e.known[word] || e.words[stem(word)] != nil {
		return true
	}
	for other := range e.known {
		if sameName(word, other) {
			return true
		}
	}
	return false
}

func initialsOf(name []string) string {
	var b strings.Builder
	for _, word := range name {
		b.WriteRune(firstRune(word))
	}
	return b.String()
}

// nameEndings are the endings by which two forms of a name differ.
var nameEndings = setOf("s|es|n|an|ian|e|en|er|ese|a|as|os|о|а|у|ы|е|ой|ом|ем|и|ю|я|ии|ию|ия|ей|ский|ского|ской|ская|ские")

// sameName reports whether two words are forms of the same name.
func sameName(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 4 {
		return a == b
	}
	if ending, is := strings.CutPrefix(b, a); is {
		return ending == "" || nameEndings[ending]
	}
	at := 0
	for at < len(a) && a[at] == b[at] {
		at++
	}
	for at > 0 && !utf8.RuneStart(b[at]) {
		at--
	}
	return at >= 6 && nameEndings[a[at:]] && nameEndings[b[at:]]
}

// stem returns the beginning of a word that its forms have in common.
func stem(word string) string {
	c := firstRune(word)
	switch {
	case c < 0x250:
		word = cutEnding(word, latinEndings, 4)
	case unicode.Is(unicode.Cyrillic, c):
		word = cutEnding(word, cyrillicEndings, 3)
	case unicode.Is(unicode.Arabic, c):
		for _, beginning := range []string{"وال", "بال", "لل", "ال"} {
			if rest, is := strings.CutPrefix(word, beginning); is && utf8.RuneCountInString(rest) >= 3 {
				word = rest
				break
			}
		}
		return cutEnding(word, arabicEndings, 3)
	case unicode.Is(unicode.Devanagari, c):
		return strings.TrimRight(word, "ाेीोंैिुूँ")
	}
	const longest = 6
	n := 0
	for i := range word {
		if n == longest {
			return word[:i]
		}
		n++
	}
	return word
}

var (
	latinEndings    = []string{"ing", "ies", "ed", "en", "er", "es", "as", "os", "e", "s", "n", "a", "o", "y"}
	cyrillicEndings = []string{
		"ами", "ями", "ого", "его", "ому", "ему", "ыми", "ими", "ов", "ев", "ах", "ях", "ом", "ем", "ый", "ий", "ая", "яя", "ое", "ее", "ые", "ие",
		"ой", "ей", "ую", "ых", "их", "а", "е", "и", "о", "у", "ы", "я", "ю", "ь", "й",
	}
	arabicEndings = []string{"ات", "ون", "ين", "ها", "ة", "ه", "ي"}
)

// cutEnding removes the first ending that leaves at least some characters.
func cutEnding(word string, endings []string, least int) string {
	for _, ending := range endings {
		if rest, is := strings.CutSuffix(word, ending); is && utf8.RuneCountInString(rest) >= least {
			return rest
		}
	}
	return word
}
