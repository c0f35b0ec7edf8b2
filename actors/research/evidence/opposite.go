package evidence

import (
	"strings"

	"turnstone/protocol/words"
)

// groupsOf returns the groups of opposites that a clause has words of.
func groupsOf(raw string, tokens []token) (groups uint16) {
	unspaced := false
	for _, t := range tokens {
		if unspaced = unspaced || t.unspaced; t.unspaced {
			continue
		}
		for end := range t.text {
			groups |= oppositeGroup(t.text, end)
		}
		groups |= oppositeGroup(t.text, len(t.text))
	}
	if unspaced {
		for beginning, group := range eastOpposites {
			if strings.Contains(raw, beginning) {
				groups |= group
			}
		}
	}
	return groups
}

// oppositeGroup returns the group of the beginning of a word. After a short beginning, only an ending may follow.
func oppositeGroup(word string, end int) uint16 {
	if end <= 4 && len(word) > end+3 {
		return 0
	}
	return oppositeBeginnings[word[:end]]
}

// oppositeBeginnings and eastOpposites are the beginnings of words, and the words of scripts without spaces, of all groups.
var oppositeBeginnings, eastOpposites = func() (spaced, east map[string]uint16) {
	spaced, east = map[string]uint16{}, map[string]uint16{}
	for i, pair := range opposites {
		for side, beginnings := range pair {
			for _, beginning := range beginnings {
				if words.Unspaced(firstRune(beginning)) {
					east[beginning] |= 1 << (2*i + side)
				} else {
					spaced[beginning] |= 1 << (2*i + side)
				}
			}
		}
	}
	return spaced, east
}()

// opposed reports whether two statements have only words of the opposite groups of a pair.
func opposed(a, b uint16) bool {
	for i := range opposites {
		left, right := a>>(2*i)&3, b>>(2*i)&3
		if left == 1 && right == 2 || left == 2 && right == 1 {
			return true
		}
	}
	return false
}

// opposites are pairs of groups of beginnings of words. A statement with a word of one group denies one with a word of the other.
var opposites = [][2][]string{
	stemPair("increas|rise|rose|risen|rising|grew|grow|climb|gain|surge|expand|steig|stieg|gestieg|wuchs|wachs|gewachs|zunahm|zunehm|zugenomm|erhöh|augment|hauss|progress|crû|croissance|aument|creci|crece|subi|sube|выро|рост|увелич|повыс|ارتفع|زاد|ازداد|बढ़|वृद्धि|增加|增长|上升|提高|増加|上昇|増え|伸び|증가|상승",
		"decreas|fall|fell|fallen|declin|drop|shrank|shrink|reduc|sank|sink|gesunk|fiel|gefallen|abnahm|abgenomm|abnehm|rückgang|verring|schrumpf|diminu|baiss|recul|chut|disminu|cay|caíd|descend|reduj|baj|сниз|упал|сократ|уменьш|паден|انخفض|تراجع|هبط|घट|गिर|कमी|减少|下降|降低|下跌|減少|低下|下落|減っ|감소|하락"),
	stemPair("more|higher|larger|greater|above|exceed|mehr|höher|größer|über|supérieur|mayor|superior|больше|выше|более|اكثر|اعلى|अधिक|ज़्यादा|高于|多于|超过|上回|以上|超え|초과",
		"less|lower|smaller|fewer|below|weniger|niedriger|kleiner|unter|inférieur|moins|menor|inferior|menos|меньше|ниже|менее|اقل|ادنى|कम|低于|少于|不到|下回|以下|未満|미만"),
	stemPair("legal|allow|permit|approv|erlaub|genehmig|autoris|permis|autoriz|разреш|允许|批准|許可|承認|سمح|허용",
		"illegal|ban|banned|prohibit|forbid|reject|verbot|verbiet|abgelehn|interdi|prohib|prohíb|запре|禁止|拒绝|却下|حظر|금지"),
	stemPair("safe|sicher|sûr|segur|безопас|安全", "unsafe|dangerous|unsicher|gefährlich|dangereu|peligros|опас|危险|危険"),
}
