package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// statement has what a sentence or an excerpt states, in the form in which two texts are compared.
type statement struct {
	language   language
	latin      bool             // of the Latin script
	words      map[string][]int // its content words, as stems, with the clauses that have them
	order      []string         // the content words in the order of the text
	quantities []quantity
	months     map[string]bool
	names      [][]string      // sequences of words that are proper names
	known      map[string]bool // the words of all names, and other words in upper case
	clauses    []clause
}

// clause is a part of a statement between two punctuation marks or conjunctions.
type clause struct {
	negated bool
	names   [][]string
	groups  uint16 // two bits for each pair of opposites: which groups it has words of
}

// statementOf analyses a text without citations.
func statementOf(text string) *statement {
	var tokens []token
	eachToken(text, true, func(t token) bool {
		tokens = append(tokens, t)
		return true
	})
	s := &statement{language: languageOf(text, tokens), words: map[string][]int{}, months: map[string]bool{}, known: map[string]bool{}}
	s.latin = s.language == "" || len(lexicons[s.language].stop) > 0 && isLatin(s.language)
	b := builder{statement: s, text: text, tokens: tokens}
	b.run()
	return s
}

// builder collects a statement from the tokens of a text.
type builder struct {
	*statement
	text        string
	tokens      []token
	first       int // token of the clause
	sentence    bool
	name        []string // the current sequence of names
	nameAtStart bool
	nameClauses []int // of the names
}

func (b *builder) run() {
	b.sentence = true
	end, from := 0, 0 // of the last token; from: where tokens count again after a quantity
	for i, t := range b.tokens {
		if t.start < from {
			continue
		}
		if i > 0 {
			b.boundary(b.text[min(end, t.start):t.start], i)
		}
		end = t.end
		if c := firstRune(b.text[t.start:]); digitValue(c) >= 0 {
			b.endName()
			from = b.number(t.start)
			end = max(end, from)
		} else if value, is := numberWords[t.text]; is && !(b.language == "en" && t.text == "dos") {
			b.numberWord(value, t)
		} else {
			b.word(i)
		}
		b.sentence = false
	}
	b.endName()
	b.endClause(len(b.tokens))
}

// conjunctions begin a clause without a punctuation mark.
var conjunctions = foldedSet("while|whereas|but|although|though|however|während|aber|obwohl|tandis|mais|alors|mientras|pero|aunque|mas|ma|mentre|тогда|хотя|но|بينما|لكن|جبكہ|जबकि|लेकिन")

// boundary ends the clause, and perhaps the sentence, before a token.
func (b *builder) boundary(gap string, i int) {
	if strings.ContainsAny(gap, ".!?。！？।|\n\"“„«:") {
		b.sentence = true
	}
	if gap != " " && gap != "-" && gap != ". " && gap != "" {
		b.endName()
	}
	if strings.ContainsAny(gap, ",;:.!?—–()。、，；：।॥؛،|") || conjunctions[b.tokens[i].text] {
		b.endClause(i)
	}
}

func (b *builder) endClause(end int) {
	tokens := b.tokens[b.first:end]
	c := clause{}
	if len(tokens) > 0 {
		raw := b.text[tokens[0].start:tokens[len(tokens)-1].end]
		c.negated = negated(b.language, raw, tokens)
		c.groups = groupsOf(raw, tokens)
	}
	b.endName()
	for i := len(b.names) - 1; i >= 0 && b.nameClauses[i] == len(b.clauses); i-- {
		c.names = append(c.names, b.names[i])
	}
	b.clauses = append(b.clauses, c)
	b.first = end
}

func (b *builder) number(at int) (end int) {
	found, end := quantityAt(b.text, at, b.language)
	if at > 0 && b.text[at-1] == '(' && end < len(b.text) && b.text[end] == ')' && end-at <= 2 {
		return end // of an enumeration
	}
	for _, q := range found {
		if q.clause = len(b.clauses); q.unit == "month of the year" {
			b.months[q.values[0]] = true
			continue
		}
		b.quantities = append(b.quantities, q)
	}
	if len(found) > 1 { // the month of a date
		for _, q := range found {
			b.months["in date "+q.values[0]] = true
		}
	}
	return end
}

func (b *builder) numberWord(value string, t token) {
	var end int
	q := quantity{values: []string{value}}
	q = q.complete(b.text, t.end, b.language, &end)
	q.clause = len(b.clauses)
	b.quantities = append(b.quantities, q)
}

// word adds a word that is no number.
func (b *builder) word(i int) {
	t := b.tokens[i]
	if t.unspaced {
		b.endName()
		b.unspaced(i)
		return
	}
	if month, is := months[t.text]; is && (!ambiguousMonths[t.text] || b.nextToNumber(i)) {
		b.endName()
		b.months[month] = true
		return
	}
	stop := lexicons[b.language].stop[t.text] || b.language == "" && anyStopWord(t.text)
	b.collectName(t, stop)
	if stop || reporting[t.text] || lexicons[b.language].negation[t.text] || utf8.RuneCountInString(t.text) < 2 || units[t.text] != "" && b.nextToNumber(i) || scales[t.text] != 0 {
		return
	}
	b.add(stem(t.text))
}

func (b *builder) nextToNumber(i int) bool {
	near := func(j int) bool {
		return j >= 0 && j < len(b.tokens) && digitValue(firstRune(b.tokens[j].text)) >= 0
	}
	return near(i-1) || near(i+1) || near(i-2)
}

func (b *builder) add(word string) {
	if b.words[word] == nil {
		b.order = append(b.order, word)
	}
	b.words[word] = append(b.words[word], len(b.clauses))
}

// eastParticles are characters of Chinese and Japanese that are no part of a word with a subject.
const eastParticles = "的了是在和与及等为為有于於以对對这這那其之将將被从從到也都就而但或因所并並每各约約後后前中上下"

// unspaced adds a pair of characters, or a single ideograph.
func (b *builder) unspaced(i int) {
	t := b.tokens[i]
	if !isSubject(t.text) || strings.ContainsAny(t.text, "年月日") && i > 0 && digitValue(firstRune(b.tokens[i-1].text)) >= 0 {
		return
	}
	joined := func(j int) bool {
		return j >= 0 && j < len(b.tokens) && b.tokens[j].unspaced && isSubject(b.tokens[j].text) && (b.tokens[j].end == t.start || b.tokens[j].start == t.end)
	}
	switch {
	case joined(i + 1):
		b.add(t.text + b.tokens[i+1].text)
	case !joined(i-1) && unicode.Is(unicode.Han, firstRune(t.text)):
		b.add(t.text)
	}
}

func isSubject(character string) bool {
	return !unicode.Is(unicode.Hiragana, firstRune(character)) && !strings.Contains(eastParticles, character)
}
