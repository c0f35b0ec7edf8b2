package evidence

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quantity is a number of a text, with its unit.
type quantity struct {
	values []string // its possible values, as normal decimals: 1.234 is 1234 in some languages
	unit   string   // "" if it has none
	clause int
}

// same reports whether two quantities may be equal. A number without a unit may have any.
func (q *quantity) same(other *quantity) bool {
	if q.unit != "" && other.unit != "" && q.unit != other.unit {
		return false
	}
	return slices.ContainsFunc(q.values, func(value string) bool { return slices.Contains(other.values, value) })
}

// isYear reports whether a quantity is probably a year.
func (q *quantity) isYear() bool {
	return q.unit == "" && len(q.values) == 1 && len(q.values[0]) == 4 && (q.values[0][0] == '1' || q.values[0][:2] == "20") && !strings.Contains(q.values[0], ".")
}

// numeral is a number as it is written.
type numeral struct {
	groups     []string // of digits
	separators []rune   // between them
	negative   bool
	end        int
}

// maxGroups is how many groups of digits a number has at most.
const maxGroups = 8

// readNumeral reads the number at a position of a text, which is a digit.
func readNumeral(text string, at int, l language) numeral {
	n := numeral{negative: isMinus(text[:at])}
	for len(n.groups) < maxGroups {
		digits, end := readDigits(text, at)
		n.groups, n.end = append(n.groups, digits), end
		c, size := utf8.DecodeRuneInString(text[end:])
		if !strings.ContainsRune(".,'’٫٬،，\u00a0\u202f\u2009 ", c) || end+size >= len(text) || digitValueAt(text, end+size) < 0 {
			break
		}
		if unicode.IsSpace(c) && !n.continues(text, end+size, c, l) {
			break
		}
		n.separators = append(n.separators, c)
		at = end + size
	}
	return n
}

// readDate reads a date such as 2020-05-12 or 12/5/2020.
func readDate(text string, at int) (n numeral, is bool) {
	years := 0
	for len(n.groups) < 3 {
		digits, end := readDigits(text, at)
		if len(digits) == 0 || len(digits) == 3 || len(digits) > 4 {
			return n, false
		}
		years += len(digits) / 4
		n.groups, n.end = append(n.groups, digits), end
		if len(n.groups) < 3 {
			c, size := utf8.DecodeRuneInString(text[end:])
			if c != '-' && c != '/' || len(n.separators) > 0 && n.separators[0] != c {
				return n, false
			}
			n.separators = append(n.separators, c)
			at = end + size
		}
	}
	return n, years == 1
}

// continues reports whether a group of digits after a space belongs to the number.
func (n *numeral) continues(text string, at int, space rune, l language) bool {
	digits, _ := readDigits(text, at)
	if len(digits) != 3 || len(n.groups[0]) > 3 || space == ' ' && l == "en" {
		return false
	}
	for _, separator := range n.separators {
		if !unicode.IsSpace(separator) {
			return false
		}
	}
	return true
}

func digitValueAt(text string, at int) int {
	c, _ := utf8.DecodeRuneInString(text[at:])
	return digitValue(c)
}

// readDigits reads decimal digits of any script. At most 24 count.
func readDigits(text string, at int) (digits string, end int) {
	var b []byte
	for at < len(text) {
		c, size := utf8.DecodeRuneInString(text[at:])
		d := digitValue(c)
		if d < 0 {
			break
		}
		if len(b) < 24 {
			b = append(b, byte('0'+d))
		}
		at += size
	}
	return string(b), at
}

// isMinus reports whether a text ends with the sign of a number: not with the hyphen of a word or of a range.
func isMinus(before string) bool {
	c, size := utf8.DecodeLastRuneInString(before)
	if c != '-' && c != '−' && c != '–' {
		return false
	}
	previous, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
	return c == '−' || len(before) == size || unicode.IsSpace(previous) && c == '-' || previous == '('
}

// readings returns the values of a number: one or two of the whole, or one of each group if it is a date, a version or a list.
func (n *numeral) readings(l language) (whole []string, parts []string) {
	switch len(n.separators) {
	case 0:
		return []string{decimal(n.groups[0], "", n.negative)}, nil
	case 1:
		return n.single(l), nil
	}
	last := n.separators[len(n.separators)-1]
	same := true
	for _, separator := range n.separators[:len(n.separators)-1] {
		same = same && separator == last
	}
	switch {
	case same && n.grouped(len(n.groups)):
		return []string{decimal(strings.Join(n.groups, ""), "", n.negative)}, nil
	case !same && n.grouped(len(n.groups)-1):
		return []string{decimal(strings.Join(n.groups[:len(n.groups)-1], ""), n.groups[len(n.groups)-1], n.negative)}, nil
	}
	for _, group := range n.groups {
		parts = append(parts, decimal(group, "", false))
	}
	return nil, parts
}

// grouped reports whether the first groups are of thousands, or as in India of hundreds with thousands at the end.
func (n *numeral) grouped(count int) bool {
	if len(n.groups[0]) > 3 || len(n.groups[count-1]) != 3 {
		return false
	}
	for _, group := range n.groups[1:max(1, count-1)] {
		if len(group) != 3 && len(group) != 2 {
			return false
		}
	}
	return true
}

// single returns the values of two groups.
func (n *numeral) single(l language) []string {
	first, second, separator := n.groups[0], n.groups[1], n.separators[0]
	thousands, fraction := decimal(first+second, "", n.negative), decimal(first, second, n.negative)
	comma, known := l.decimalComma()
	switch {
	case separator == '٬' || separator == '\'' || separator == '’' || unicode.IsSpace(separator):
		return []string{thousands}
	case len(second) != 3 || len(first) > 3 || first == "0" || separator == '٫':
		return []string{fraction}
	case !known:
		return []string{thousands, fraction}
	case (separator == '.') == comma:
		return []string{thousands}
	}
	return []string{fraction}
}

// decimal returns the normal form of a decimal number.
func decimal(whole, fraction string, negative bool) string {
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" {
		return "-" + whole
	}
	return whole
}

// scaled returns a normal decimal multiplied by a power of ten.
func scaled(value string, power int) string {
	rest, negative := strings.CutPrefix(value, "-")
	whole, fraction, _ := strings.Cut(rest, ".")
	for ; power > 0; power-- {
		if fraction == "" {
			whole += "0"
			continue
		}
		whole, fraction = whole+fraction[:1], fraction[1:]
	}
	return decimal(whole, fraction, negative)
}

// quantityAt reads the quantity at a position, which is a digit. end is where the text continues. A date gives one for each of
// its parts.
func quantityAt(text string, at int, l language) (all []quantity, end int) {
	n, isDate := readDate(text, at)
	if !isDate {
		n = readNumeral(text, at, l)
	}
	values, parts := n.readings(l)
	for _, part := range parts {
		all = append(all, quantity{values: []string{part}})
	}
	if parts != nil {
		return all, n.end
	}
	q := quantity{values: values, unit: currencyBefore(text[:at])}
	return []quantity{q.complete(text, n.end, l, &end)}, end
}

// complete adds the scale and the unit that follow a number.
func (q quantity) complete(text string, at int, l language, end *int) quantity {
	at = q.addEastScale(text, at)
	at = q.addScale(text, at, l)
	*end = q.addUnit(text, at)
	if q.unit == "year" && q.values[0] >= "1000" && len(q.values[0]) == 4 { // 2020年
		q.unit = ""
	}
	return q
}

// addEastScale multiplies by scales such as 万, and adds the parts after them: 1億2000万.
func (q *quantity) addEastScale(text string, at int) int {
	total, value := int64(0), q.values[0]
	for scaledOnce := false; at < len(text); scaledOnce = true {
		c, size := utf8.DecodeRuneInString(text[at:])
		power, is := eastScales[c]
		if !is {
			break
		}
		at += size
		value = scaled(value, power)
		digits, next := readDigits(text, at)
		more, _ := utf8.DecodeRuneInString(text[next:])
		if _, again := eastScales[more]; !again && !(digits != "" && scaledOnce) {
			break
		}
		if digits == "" {
			continue // 百万
		}
		part, err := strconv.ParseInt(value, 10, 64)
		if err != nil || len(digits) > 12 {
			break
		}
		total, value, at = total+part, decimal(digits, "", false), next
	}
	if part, err := strconv.ParseInt(value, 10, 64); err == nil && total > 0 {
		value = strconv.FormatInt(total+part, 10)
	}
	if value != q.values[0] {
		q.values = []string{value}
	}
	return at
}

// wordAfter returns the next word of a text, folded, and its end. Spaces and a hyphen may precede it.
func wordAfter(text string, at int) (word string, end int) {
	rest := text[at:]
	gap := len(rest) - len(strings.TrimLeft(rest, " \u00a0\u202f-\t"))
	if gap > 4 {
		return "", at
	}
	limit := at + gap
	for limit < len(text) && limit < at+gap+48 {
		c, size := utf8.DecodeRuneInString(text[limit:])
		if !unicode.IsLetter(c) && !unicode.IsMark(c) {
			break
		}
		limit += size
	}
	eachToken(text[at:limit], false, func(t token) bool {
		if !t.unspaced {
			word, end = t.text, at+t.end
		}
		return false
	})
	return word, end
}

func (q *quantity) addScale(text string, at int, l language) int {
	for range 2 { // mil millones
		word, end := wordAfter(text, at)
		power, is := scales[word]
		if long, differs := longScales[word]; differs && (l == "de" || l == "fr") {
			power = long
		}
		if !is || word == "cent" && l != "fr" {
			break
		}
		for i := range q.values {
			q.values[i] = scaled(q.values[i], power)
		}
		if at = end; at < len(text) && text[at] == '.' && len(word) <= 6 { // тыс., Mio.
			at++
		}
	}
	return at
}

// unitJoints are words between a number and its unit.
var unitJoints = foldedSet("de|d|of|us|u|s")

func (q *quantity) addUnit(text string, at int) int {
	rest := strings.TrimLeft(text[at:], " \u00a0\u202f")
	if c, size := utf8.DecodeRuneInString(rest); symbols[c] != "" && len(text)-at-len(rest) <= 3 {
		q.unit = symbols[c]
		return len(text) - len(rest) + size
	}
	if unit, n := eastUnit(text[at:]); n > 0 {
		q.unit = unit
		return at + n
	}
	start := at
	for range 3 {
		word, end := wordAfter(text, at)
		if unit, is := units[word]; is {
			if q.unit == "" {
				q.unit = unit
			}
			return q.power(text, end)
		}
		if after, last := wordAfter(text, max(end, at)); (word == "per" || word == "pour" || word == "por") && (after == "cent" || after == "ciento") {
			q.unit = "%"
			return last
		}
		if word == "في" || !unitJoints[word] {
			break
		}
		at = end
	}
	return start
}

// power adds the power of a unit, and what it is divided by: m², km/h.
func (q *quantity) power(text string, at int) int {
	c, size := utf8.DecodeRuneInString(text[at:])
	if p := superscript(c); p > 0 {
		q.unit += strconv.Itoa(p)
		return at + size
	}
	if c == '/' {
		if word, end := wordAfter(text, at+1); word != "" {
			q.unit += "/" + word
			return end
		}
	}
	return at
}

// currencyBefore returns the unit of a currency sign at the end of a text.
func currencyBefore(before string) string {
	before = strings.TrimRight(before[max(0, len(before)-8):], " \u00a0")
	if c, _ := utf8.DecodeLastRuneInString(before); c != utf8.RuneError && strings.ContainsRune(currencies, c) {
		return symbols[c]
	}
	return ""
}
