package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// language is a language that this package knows words of. It is "" if it is not known.
type language string

// lexicon has the words of a language that carry no subject, as sentences are compared.
type lexicon struct {
	stop     map[string]bool
	negation map[string]bool
}

func lexiconOf(stop, negation string) lexicon {
	return lexicon{foldedSet(strings.ReplaceAll(stop, " ", "|")), foldedSet(strings.ReplaceAll(negation, " ", "|"))}
}

var lexicons = map[language]lexicon{
	"en": lexiconOf("a an the of in on at by for from to with and or but as is are was were be been being it its this that these those which who whom "+
		"whose what when where while if than then there their they them he she his her we our you your i has have had do does did will would can could "+
		"may might must should also more most such some any all each both about into over under between after before during since until up out only "+
		"just very so however although because through per via according including among within around almost nearly roughly approximately", "not no never none neither nor cannot failed fails without"),
	"de": lexiconOf("der die das den dem des ein eine einer eines einem einen und oder aber als ist sind war waren wird werden wurde wurden sein es er "+
		"sie ihr ihre ihren seine seiner seinem dieser diese dieses diesem jener welche welcher was wann wo wenn in im an am auf aus bei beim mit nach "+
		"von vom zu zum zur für über unter zwischen vor seit bis durch um hat haben hatte hatten kann können konnte soll muss auch mehr so nur noch "+
		"sehr sich dass daß man sowie etwa rund laut dabei damit davon dort hier wie je pro ca bereits jedoch während betrug beträgt lag liegt belief", "nicht kein keine keinen keiner keinem keines nie niemals weder nichts ohne"),
	"fr": lexiconOf("le la les l un une des du de d et ou mais comme est sont était étaient être été a ont avait avaient il elle ils elles ce cet "+
		"cette ces qui que qu dont où quand si dans en sur sous par pour avec au aux à son sa ses leur leurs se s on nous vous plus très aussi ainsi "+
		"entre après avant depuis jusqu environ selon lors pendant sans chez y ne n c soit cela tout tous toute toutes", "pas jamais aucun aucune rien ni sans"),
	"es": lexiconOf("el la los las un una unos unas de del y o u pero como es son era eran fue fueron ser sido ha han había habían que quien quienes "+
		"cual cuales cuando donde si en sobre por para con al a su sus se lo le les esto esta este estos estas más muy también entre tras antes "+
		"después desde hasta según durante e ya así cada todo todos toda todas está están unas", "no nunca ningún ninguna ninguno jamás ni sin tampoco"),
	"pt": lexiconOf("o a os as um uma uns umas de do da dos das e ou mas como é são era eram foi foram ser sido tem têm que quem quando onde se em no "+
		"na nos nas sobre por para com ao à seu sua seus suas mais muito também entre após antes desde até segundo durante já cada isso esta este essa "+
		"esse pelo pela", "não nunca nenhum nenhuma jamais nem sem"),
	"it": lexiconOf("il lo la i gli le un uno una di del dello della dei degli delle e o ma come è sono era erano fu furono essere stato stata ha "+
		"hanno aveva che chi cui quando dove se in nel nella nei nelle su sul sulla per con al alla ai alle da dal dalla suo sua suoi sue si più molto "+
		"anche tra fra dopo prima fino secondo durante già ogni questo questa", "non mai nessun nessuna né senza"),
	"ru": lexiconOf("и в во на с со к ко о об от до из за по под над при для без у же ли бы но а или что как это этот эта эти того тот та те его ее их "+
		"он она они оно мы вы был была было были есть быть который которая которое которые также более еще уже только около после перед между через "+
		"году год года лет г гг свой своей своего так чем где когда если всего однако", "не ни нет никогда никакой никаких без"),
	"ar": lexiconOf("في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين أن إن ان كان كانت يكون هو هي هم و أو او ثم كما بعد قبل بين عند منذ حتى كل "+
		"قد لقد ما خلال حول نحو عام سنة حيث وقد كذلك ايضا أيضا بلغ بلغت يبلغ تبلغ", "لم لن ليس ليست لا غير دون"),
	"hi": lexiconOf("का के की को में से पर ने है हैं था थी थे हो और या कि यह वह ये वे इस उस जो एक भी तक ही तो कर करने किया गया गई गए लिए साथ बाद पहले "+
		"अपने अपनी उनके इसके लगभग करीब हुआ हुई होता होती", "नहीं न मत बिना"),
	"zh": lexiconOf("", ""), "ja": lexiconOf("", ""), "ko": lexiconOf("", ""),
}

// reporting are words of reports about what others found. They are no subject, so a paraphrase may leave them out.
var reporting = foldedSet(strings.ReplaceAll("researchers researcher scientists scientist study studies report reports reported experts expert authors "+
	"author analysis found finds find showed shows show shown says said say states stated data figures evidence suggests suggest indicates estimated "+
	"estimates estimate"+
	" forscher forscherinnen wissenschaftler studie studien bericht experten fanden zeigte zeigt zeigen ergab angaben zufolge schätzungsweise autoren"+
	" chercheurs scientifiques étude études rapport experts montre montrent montré selon données estimé auteurs"+
	" investigadores científicos estudio estudios informe expertos muestra muestran mostró según datos estimado autores señala"+
	" исследователи ученые исследование исследования отчет эксперты показало показывает показали данным согласно сообщает"+
	" الباحثون باحثون العلماء دراسة الدراسة تقرير التقرير الخبراء اظهرت وفقا"+
	" शोधकर्ताओं शोधकर्ता वैज्ञानिकों अध्ययन रिपोर्ट विशेषज्ञों अनुसार", " ", "|"))

// latin are the languages of the Latin script, in the order in which equal counts are decided.
var latin = []language{"en", "de", "fr", "es", "pt", "it"}

var stopWords = func() map[string]bool {
	all := map[string]bool{}
	for _, l := range lexicons {
		for word := range l.stop {
			all[word] = true
		}
	}
	return all
}()

// anyStopWord reports whether a word is a stop word of a language.
func anyStopWord(folded string) bool { return stopWords[folded] }

// languageOf returns the language of a text from its scripts and its stop words.
func languageOf(text string, tokens []token) language {
	counts := map[language]int{}
	for _, t := range tokens {
		counts[scriptLanguage(firstRune(t.text))]++
	}
	switch letters := counts["latin"]; {
	case counts["ja"] > 0 && 2*(counts["ja"]+counts["zh"]) > letters && counts["ja"]*8 >= counts["zh"]:
		return "ja"
	case counts["zh"] > 2*letters:
		return "zh"
	case counts["ko"] > 2*letters:
		return "ko"
	}
	for _, other := range []language{"ru", "ar", "hi"} {
		if counts[other] > counts["latin"] {
			return other
		}
	}
	return latinLanguage(tokens)
}

func scriptLanguage(c rune) language {
	switch {
	case c < 0x250:
		if unicode.IsLetter(c) {
			return "latin"
		}
		return ""
	case unicode.In(c, unicode.Hiragana, unicode.Katakana) || c == 'ー':
		return "ja"
	case unicode.Is(unicode.Han, c):
		return "zh"
	case unicode.Is(unicode.Hangul, c):
		return "ko"
	case unicode.Is(unicode.Cyrillic, c):
		return "ru"
	case unicode.Is(unicode.Arabic, c):
		return "ar"
	case unicode.Is(unicode.Devanagari, c):
		return "hi"
	}
	return ""
}

func latinLanguage(tokens []token) (best language) {
	most := 0
	for _, l := range latin {
		count := 0
		for _, t := range tokens {
			if lexicons[l].stop[t.text] || lexicons[l].negation[t.text] {
				count++
			}
		}
		if count > most {
			best, most = l, count
		}
	}
	return best
}

// decimalComma reports whether a language writes 1,5 for one and a half; known is false if both are possible.
func (l language) decimalComma() (comma, known bool) {
	switch l {
	case "de", "fr", "es", "pt", "it", "ru":
		return true, true
	case "en", "zh", "ja", "ko", "hi":
		return false, true
	}
	return false, false
}

// marksNames reports whether a language writes proper names, and only those, in upper case.
func (l language) marksNames() bool { return l == "ru" || l != "de" && isLatin(l) }

// eastNegations and eastNoNegations are parts of words of Chinese, Japanese and Korean. The second are removed first.
var (
	eastNoNegations = []string{
		"不仅", "不僅", "不同", "不断", "不斷", "不少", "不过", "不過", "不久", "不管", "不论", "不但", "不良", "不足", "未来", "未來", "无人", "无线", "無人", "無線", "非常", "だけでなく",
		"少なくとも", "少なく", "少ない", "なければならない", "かもしれない", "間もなく", "まもなく", "뿐만 아니라", "뿐 아니라", "못지않",
	}
	eastNegations = []string{"不", "没", "沒", "未", "无", "無", "否", "ない", "なかった", "なく", "ません", "ずに", "않", "없", "못하", "아니"}
)

// phrasesWithoutNegation are phrases whose negation denies nothing.
var phrasesWithoutNegation = foldedList("not only|no longer than|no less than|no fewer than|not least|nothing but|nicht nur|nicht zuletzt|non seulement|pas seulement|no solo|no sólo|no solamente|não só|non solo|не только|ليس فقط|لا يقل عن|न केवल|no 1|no 2")

// negated reports whether a clause has a negation.
func negated(l language, raw string, tokens []token) bool {
	if l == "zh" || l == "ja" || l == "ko" {
		for _, phrase := range eastNoNegations {
			raw = strings.ReplaceAll(raw, phrase, "")
		}
		for _, part := range eastNegations {
			if strings.Contains(raw, part) {
				return true
			}
		}
		return false
	}
	for i, t := range tokens {
		if (lexicons[l].negation[t.text] || isContraction(tokens, i)) && !inPhraseWithoutNegation(tokens[i:]) {
			return true
		}
	}
	return false
}

// isContraction reports whether a token is the end of a word such as "didn't".
func isContraction(tokens []token, i int) bool {
	return i > 0 && tokens[i].text == "t" && strings.HasSuffix(tokens[i-1].text, "n") && tokens[i].start-tokens[i-1].end <= len("’")
}

func inPhraseWithoutNegation(tokens []token) bool {
	var b strings.Builder
	for _, t := range tokens[:min(3, len(tokens))] {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return beginsWith(b.String(), phrasesWithoutNegation)
}

func stemPair(a, b string) [2][]string { return [2][]string{foldedList(a), foldedList(b)} }

func firstRune(text string) rune {
	c, _ := utf8.DecodeRuneInString(text)
	return c
}

func isLatin(l language) bool {
	for _, one := range latin {
		if one == l {
			return true
		}
	}
	return false
}
