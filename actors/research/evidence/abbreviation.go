package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// innerAbbreviations are never the last word of a sentence; finalAbbreviations may be. Both are without their last full stop, in
// lower case.
var (
	innerAbbreviations = setOf("dr|mr|mrs|ms|prof|st|ste|vs|e.g|eg|i.e|ie|cf|fig|figs|eq|eqs|sec|sect|ch|vol|no|nos|pp|p|art|ed|eds|rev|hon|gen|gov|sen|rep|col|capt|lt|sgt|maj|approx|ca|c|est|viz|resp|dept|univ|mt|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun" +
		"|z.b|z. b|d.h|d. h|u.a|u. a|o.ä|bzw|vgl|nr|abb|tab|kap|bd|hrsg|geb|gest|ggf|evtl|sog|inkl|zzgl|max|min|mio|mrd|tsd|str|abs|s|i.d.r|v.a|z.t|gem|lt|fr|hr|jh|jhd|jhdt" +
		"|m|mm|mme|mlle|mgr|me|p.ex|p. ex|av|apr|env|janv|févr|avr|juil|sept|oct|nov|déc|éd|chap|n|t" +
		"|sr|sra|srta|dra|ud|uds|pág|págs|núm|cap|aprox|gral|p.ej|p. ej|a.c|d.c|ee.uu|ee. uu|av|avda" +
		"|т.е|т. е|т.к|т. к|т.н|т. н|им|ул|г|гл|рис|табл|см|стр|с|акад|проф|тыс|млн|млрд|руб|коп|ок|св|напр|н.э|н. э|до н")
	// ambiguousAbbreviations are words too, if they are in lower case and no number follows.
	ambiguousAbbreviations = setOf("no|nos|art|sun|sat|mar|max|min|me|est|sec|ed|eds|col|rep|gen|fig|figs|ch|hr|fr|lt|str|abs|bd|cap|av|mon|tab|dec|wed|thu|ca|gem|n|t|c|p|s|m|с|г|им|ок|св|см")
	finalAbbreviations     = setOf("etc|inc|ltd|co|corp|bros|jr|al|a.m|p.m|u.s|u.k|u.n|e.u|ph.d|b.sc|m.sc|d.c|usw|usf|u.s.w|гг|др|т.д|т. д|т.п|т. п|пр|p.a|n.a|s.a|plc|gmbh")
	monthBeginnings        = []string{"jan", "jän", "feb", "mär", "apr", "mai", "jun", "jul", "aug", "sep", "okt", "nov", "dez"}
	centuryBeginnings      = []string{"jahrhundert", "jh", "platz", "auflage", "klasse", "bezirk", "weltkrieg", "lebensjahr", "quartal", "stock", "etage", "generation"}
)

// isAbbreviated reports whether a full stop between two texts belongs to an abbreviation, an initial or an ordinal number.
func isAbbreviated(before, after string, next rune) bool {
	tail := before[max(0, len(before)-maxCitation):]
	word := tail[strings.LastIndexFunc(tail, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("([\"“„«'’*_", c) })+1:]
	lower := strings.ToLower(word)
	switch {
	case word == "" || next == 0:
		return false
	case isDigit(word[0]):
		return isOrdinal(word, after)
	case pairAbbreviated(tail, word, after):
		return true
	case isInitial(word):
		return !beginsWithStopWord(after)
	case finalAbbreviations[lower]:
		return !unicode.IsUpper(next) && unicode.IsLetter(next)
	case innerAbbreviations[lower]:
		return !ambiguousAbbreviations[lower] || unicode.IsNumber(next) || unicode.IsUpper(firstRune(word)) && !beginsWithStopWord(after)
	}
	return false
}

// pairAbbreviated reports whether a word is the first or the second one of an abbreviation with a space, such as "z. B."
func pairAbbreviated(tail, word, after string) bool {
	second, _, dotted := strings.Cut(strings.TrimLeft(after[:min(len(after), maxCitation)], " \u00a0\u202f"), ".")
	if dotted && innerAbbreviations[strings.ToLower(word+". "+second)] {
		return true
	}
	rest := strings.TrimRight(strings.TrimSuffix(tail, word), " \u00a0\u202f")
	if !strings.HasSuffix(rest, ".") {
		return false
	}
	first := rest[strings.LastIndexAny(rest[:len(rest)-1], " (\n")+1:]
	return innerAbbreviations[strings.ToLower(first+" "+word)]
}

// isInitial reports whether a word is one or more initials of a name, such as J or J.R.
func isInitial(word string) bool {
	for part := range strings.SplitSeq(word, ".") {
		if c, size := utf8.DecodeRuneInString(part); size != len(part) || !unicode.IsUpper(c) {
			return false
		}
	}
	return !finalAbbreviations[strings.ToLower(word)]
}

// beginsWithStopWord reports whether a text begins with a word that is no name.
func beginsWithStopWord(text string) (is bool) {
	eachToken(text[:min(len(text), maxCitation)], false, func(t token) bool {
		is = anyStopWord(t.text) && utf8.RuneCountInString(t.text) > 1 // one character may be an initial
		return false
	})
	return is
}

// isOrdinal reports whether a number and a full stop are an ordinal, as in German: "am 3. Oktober", "im 19. Jahrhundert".
func isOrdinal(word, after string) bool {
	if len(word) > 2 || strings.Trim(word, "0123456789") != "" {
		return false
	}
	next := strings.ToLower(strings.TrimLeft(after[:min(len(after), maxCitation)], " \u00a0"))
	for _, beginning := range append(monthBeginnings[:len(monthBeginnings):len(monthBeginnings)], centuryBeginnings...) {
		if strings.HasPrefix(next, beginning) {
			return true
		}
	}
	return false
}
