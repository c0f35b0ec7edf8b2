package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reading is what the model has read when it asks for a call. The texts are those of the request. It is used by one goroutine
// at a time.
type Reading struct {
	User      []string // what the user has written in this conversation
	Private   []string // data of the account from elsewhere: files, instructions, results of private tools
	Untrusted bool     // text of strangers is among what the model has read
	Opaque    bool     // pictures are among it, with which no text can be compared
	Addresses []string // that a search has found in this turn

	// The words of User and Private. They are set by the first call that needs them.
	userWords, privateWords *corpus
}

const (
	// runOfWords is how many words in a row have to be those of a private text.
	runOfWords = 3
	// telling is the length, in characters, of a word with a digit that says something by itself, and of a number.
	telling = 4
	// joined is the length, in bytes, of a word that may be several private words without spaces.
	joined = 8
	// longWord is the length, in characters, of a word that may be data in an encoding that is not known.
	longWord = 24
	// maxEscapes is how often a text may have been escaped for an address.
	maxEscapes = 4
	// maxMarked limits the marked parts.
	maxMarked = 20
)

// leaks returns why a text that leaves the service needs an approval, and the parts of it that are private. A nil reading
// assumes the worst.
func (r *Reading) leaks(text string, address bool) (reasons, marked []string) {
	if r == nil {
		return []string{"It is not known any more what the answer is based on, and the call sends something out of the service."}, nil
	}
	if len(r.Private) == 0 && !r.Untrusted && !r.Opaque {
		return nil, nil
	}
	if address && (named(r.User, text) || slices.Contains(r.Addresses, text)) {
		return nil, nil
	}
	if len(r.Private) > 0 {
		marked = r.private(text)
	}
	if len(marked) > 0 {
		reasons = append(reasons, "It would send data of yours to another service.")
	}
	switch {
	case address:
		reasons = append(reasons, "You did not name this address, and no search has found it.")
	case r.Opaque && len(marked) == 0:
		reasons = append(reasons, "The model has seen a picture, and may describe it to another service.")
	}
	return reasons, marked
}

// private returns the parts of a text that are in a private text, or may be one in another form, and that the user has not
// written.
func (r *Reading) private(text string) (marked []string) {
	text = unescaped(text)
	if r.privateWords == nil {
		r.privateWords, r.userWords = newCorpus(r.Private), newCorpus(r.User)
	}
	private, user := r.privateWords, r.userWords
	mark := func(part string) {
		if len(marked) < maxMarked && !slices.Contains(marked, part) {
			marked = append(marked, part)
		}
	}
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("?&=/#+,;\"'", c) }) {
		if len([]rune(word)) >= longWord && strings.IndexFunc(word, func(c rune) bool { return c > unicode.MaxASCII }) < 0 && !contains(r.User, word) {
			mark(word)
		}
	}
	tokens := wordsOf(text)
	for i, token := range tokens {
		if hasDigit(token) && utf8.RuneCountInString(token) >= telling && private.has(token) && !user.has(token) {
			mark(token)
		}
		if len(token) >= joined && private.hasJoined(token) && !user.has(token) {
			mark(token)
		}
		if i+runOfWords <= len(tokens) {
			if run := tokens[i : i+runOfWords]; private.has(run...) && !user.has(run...) {
				mark(strings.Join(run, " "))
			}
		}
	}
	for _, number := range numbersOf(text) {
		if private.hasNumber(number) && !user.hasNumber(number) {
			mark(number)
		}
	}
	for _, part := range r.encoded(text) {
		mark(part)
	}
	return marked
}

// escape matches a byte of a text that is escaped for an address.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// unescaped returns a text without the escapes of addresses, however often they were applied and wherever they are.
func unescaped(text string) string {
	for range maxEscapes {
		plain := escape.ReplaceAllStringFunc(text, func(found string) string {
			c, _ := strconv.ParseUint(found[1:], 16, 8)
			return string([]byte{byte(c)})
		})
		if plain == text {
			break
		}
		text = plain
	}
	return text
}

// named reports whether a text has an address, as a whole: the beginning of an address may be another one. Punctuation of a sentence
// and a slash at the end do not count.
func named(texts []string, address string) bool {
	const ends = ".,;:!?/"
	address = strings.TrimRight(address, ends)
	for _, text := range texts {
		for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("<>\"'()[]{}|“”„«»", c) }) {
			if strings.TrimRight(word, ends) == address {
				return true
			}
		}
	}
	return false
}
