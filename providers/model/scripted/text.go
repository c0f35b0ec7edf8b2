package scripted

import (
	"strings"
	"unicode"
)

// text is a list of tokens that is not stored as a whole: a head, and then tokens of a passage that repeats, with an
// inset after the first insetAt tokens of the passage.
type text struct {
	head    []string
	passage []string
	tokens  int
	inset   []string
	insetAt int
}

func (t text) length() int { return len(t.head) + t.tokens + len(t.inset) }

func (t text) at(i int) string {
	if i < len(t.head) {
		return t.head[i]
	}
	i -= len(t.head)
	if i < t.insetAt || len(t.inset) == 0 {
		return t.passage[i%len(t.passage)]
	}
	if i -= t.insetAt; i < len(t.inset) {
		return t.inset[i]
	}
	return t.passage[(i-len(t.inset)+t.insetAt)%len(t.passage)]
}

// after returns the position at which a text that was cut after prefix continues: the index of the token, and the
// number of its bytes that prefix contains. If the text does not start with prefix, the position is the start of the
// text.
func (t text) after(prefix string) (token, rest int) {
	for i := range t.length() {
		if prefix == "" {
			return i, 0
		}
		next := t.at(i)
		if strings.HasPrefix(next, prefix) && len(next) > len(prefix) {
			return i, len(prefix)
		}
		var found bool
		if prefix, found = strings.CutPrefix(prefix, next); !found {
			return 0, 0
		}
	}
	if prefix != "" {
		return 0, 0
	}
	return t.length(), 0
}

func (t text) String() string {
	var all strings.Builder
	for i := range t.length() {
		all.WriteString(t.at(i))
	}
	return all.String()
}

// Token returns token i of the text of every directive.
func Token(i int) string { return passage[i%len(passage)] }

// split splits text after each run of white space.
func split(text string) []string {
	var tokens []string
	start := 0
	for i := 1; i < len(text); i++ {
		if !blank(text[i]) && blank(text[i-1]) {
			tokens = append(tokens, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		tokens = append(tokens, text[start:])
	}
	return tokens
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }

// passage is the text of answers to directives. It ends with a complete paragraph, so that it can be repeated.
var passage = split(`The ruddy turnstone is a small wader that walks the tide line in all seasons. It is named for its ` +
	`habit: it pushes pebbles, shells and weed aside with a short, strong bill, and eats what was hidden below. A flock ` +
	`works along the shore in a loose row, and what one bird uncovers the next one may take.

` +
	`In summer the birds nest on the coasts of the far north, where the days hardly end. In autumn they leave for the ` +
	`shores of the other continents, and some cross an ocean without a rest. They come back to the same stretch of ` +
	`beach, year after year, as if the stones were numbered.

` +
	`Watchers say that a turnstone gives up on nothing that it has begun to turn. If a stone is too heavy for one, ` +
	`several birds have been seen to lean on it together. When a wave comes they run, wait, and go on at the same ` +
	`place.

`)

// reasoningText is the reasoning of answers to directives.
var reasoningText = split(`Reading the question once more, and looking for what is asked and what is not. Weighing two ways to ` +
	`answer: a short one that leaves the reader to fill in the steps, and a longer one that walks through them. ` +
	`Checking the order of the parts, then choosing the plainest words that still say all of it. `)

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
