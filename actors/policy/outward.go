package policy

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"turnstone/protocol/words"
)

// Reading is what the model has read when it asks for a call. The texts are those of the request. It is used by one goroutine
// at a time.
type Reading struct {
	User      []string // what the user has written in this conversation
	Private   []string // data of the account from elsewhere: files, instructions, results of private tools
	Untrusted bool     // text of strangers is among what the model has read
	Addresses []string // that a search has found in this turn

	// The words of User and Private. They are set by the first call that needs them.
	userWords, privateWords *corpus
}

const (
	// runOfWords is how many words in a row have to be those of a private text.
	runOfWords = 3
	// telling is the length, in characters, of a word with a digit that says something by itself.
	telling = 4
	// encoded is the length, in characters, of a word that may be encoded data.
	encoded = 24
	// maxMarked limits the marked parts.
	maxMarked = 20
)

// leaks returns why a text that leaves the service needs an approval, and the parts of it that are private. A nil reading
// assumes the worst.
func (r *Reading) leaks(text string, address bool) (reasons, marked []string) {
	if r == nil {
		return []string{"It is not known any more what the answer is based on, and the call sends something out of the service."}, nil
	}
	if len(r.Private) == 0 && !r.Untrusted {
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
	if address {
		reasons = append(reasons, "You did not name this address, and no search has found it.")
	}
	return reasons, marked
}

// private returns the parts of a text that are in a private text, or may be one in another form, and that the user has not
// written.
func (r *Reading) private(text string) (marked []string) {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	if r.privateWords == nil {
		r.privateWords, r.userWords = newCorpus(r.Private), newCorpus(r.User)
	}
	private, user := r.privateWords, r.userWords
	mark := func(part string) {
		if len(marked) < maxMarked && !slices.Contains(marked, part) {
			marked = append(marked, part)
		}
	}
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("?&=/#,;\"'", c) }) {
		if len([]rune(word)) >= encoded && strings.IndexFunc(word, func(c rune) bool { return c > unicode.MaxASCII }) < 0 && !contains(r.User, word) {
			mark(word)
		}
	}
	tokens := wordsOf(text)
	for i, token := range tokens {
		if len([]rune(token)) >= telling && strings.IndexFunc(token, unicode.IsDigit) >= 0 && private.has(token) && !user.has(token) {
			mark(token)
		}
		if i+runOfWords <= len(tokens) {
			if run := strings.Join(tokens[i:i+runOfWords], " "); private.has(run) && !user.has(run) {
				mark(run)
			}
		}
	}
	return marked
}

// wordsOf returns the words of a text, in the form in which they are compared.
func wordsOf(text string) []string {
	tokens := words.Tokenize(words.Normalize(text))
	all := make([]string, len(tokens))
	for i, token := range tokens {
		all[i] = token.Text
	}
	return all
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

func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
}

// corpus is a set of texts as one text of words.
type corpus string

func newCorpus(texts []string) *corpus {
	var all strings.Builder
	for _, text := range texts {
		for _, word := range wordsOf(text) {
			all.WriteString(" ")
			all.WriteString(word)
		}
		all.WriteString(" \x00")
	}
	words := corpus(all.String())
	return &words
}

// has reports whether a text has a word, or words in a row with single spaces between them.
func (c *corpus) has(run string) bool { return strings.Contains(string(*c), " "+run+" ") }
