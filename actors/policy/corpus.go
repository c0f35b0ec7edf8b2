package policy

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"turnstone/protocol/words"
)

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

func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
}

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

// numbers matches a number of several groups of digits, and a decimal number.
var numbers = regexp.MustCompile(`\p{Nd}+(?:[ .,:/()\x{a0}\x{202f}_-]{1,2}\p{Nd}+)*`)
