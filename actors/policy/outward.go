package policy

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol/words"
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

func hasDigit(text string) bool { return strings.IndexFunc(text, unicode.IsDigit) >= 0 }

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

// numbers matches a number of several groups of digits, and a decimal number.
var numbers = regexp.MustCompile(`\p{Nd}+(?:[ .,:/()\x{a0}\x{202f}_-]{1,2}\p{Nd}+)*`)

// numbersOf returns the numbers of a text without what separates their digits, if they are telling: all digits in a row, and each
// decimal number.
func numbersOf(text string) (all []string) {
	for _, found := range numbers.FindAllString(text, -1) {
		groups := strings.FieldsFunc(found, func(c rune) bool { return !unicode.IsDigit(c) })
		if number := strings.Join(groups, ""); len(number) >= telling {
			all = append(all, number)
		}
		for i := 1; i < len(groups) && len(groups) > 2; i++ { // such as coordinates
			if pair := groups[i-1] + groups[i]; len(pair) >= telling {
				all = append(all, pair)
			}
		}
	}
	return all
}

// corpus has the words, the runs of words and the numbers of texts, as hashes in order: a large text has hundreds of thousands.
type corpus struct {
	seed                 maphash.Seed
	words, glued, digits []uint64
}

func newCorpus(texts []string) *corpus {
	c := &corpus{seed: maphash.MakeSeed()}
	for _, text := range texts {
		tokens := wordsOf(text)
		for i, token := range tokens {
			c.words = append(c.words, c.hash(token))
			if i+runOfWords <= len(tokens) {
				c.words = append(c.words, c.hash(tokens[i:i+runOfWords]...))
			}
			for n := 2; n <= runOfWords && i+n <= len(tokens); n++ {
				if glued := strings.Join(tokens[i:i+n], ""); len(glued) >= joined {
					c.glued = append(c.glued, c.hash(glued))
				}
			}
		}
		for _, number := range numbersOf(text) {
			c.digits = append(c.digits, c.hash(number))
		}
	}
	for _, hashes := range []*[]uint64{&c.words, &c.glued, &c.digits} {
		slices.Sort(*hashes)
		*hashes = slices.Compact(*hashes)
	}
	return c
}

func (c *corpus) hash(words ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, word := range words {
		_, _ = h.WriteString(word) // it never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// has reports whether a text has words in a row.
func (c *corpus) has(words ...string) bool { return contained(c.words, c.hash(words...)) }

// hasJoined reports whether a text has two or three words in a row that are one word without the spaces.
func (c *corpus) hasJoined(word string) bool { return contained(c.glued, c.hash(word)) }

// hasNumber reports whether a text has a number, whatever separates its digits.
func (c *corpus) hasNumber(digits string) bool { return contained(c.digits, c.hash(digits)) }

func contained(hashes []uint64, hash uint64) bool {
	_, is := slices.BinarySearch(hashes, hash)
	return is
}
