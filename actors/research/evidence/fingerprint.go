package evidence

import (
	"encoding/binary"
	"math/bits"

	"turnstone/actors/passages"
)

const (
	// shingleWords is the number of words of a shingle.
	shingleWords = 3
	// minNearWords is the number of words from which two texts may be near without being equal. Fewer shingles make a
	// simhash of chance.
	minNearWords = 50
	// maxWordBits and maxNumberBits are the numbers of bits by which the simhashes of near texts differ. TestFingerprintRates
	// measures them.
	maxWordBits   = 10
	maxNumberBits = 10
)

// Fingerprint identifies a text approximately. It has a fixed size, and can be stored.
type Fingerprint struct {
	Words   uint64 // simhash of its shingles
	Numbers uint64 // simhash of its numbers
	Exact   uint64 // hash of all its words
	Count   int    // of its words
}

// FingerprintOf returns the fingerprint of a text. Case, accents, punctuation and spaces do not change it.
func FingerprintOf(text string) Fingerprint {
	var f Fingerprint
	var shingles, numbers simhash
	var last [shingleWords]uint64
	f.Exact = hashSeed
	passages.EachWord(text, func(word []byte) {
		h := hash(hashSeed, word)
		f.Exact = mix(f.Exact ^ h)
		copy(last[:], last[1:])
		last[shingleWords-1] = h
		if f.Count++; f.Count >= shingleWords {
			shingle := uint64(hashSeed)
			for _, one := range last {
				shingle = mix(shingle ^ one)
			}
			shingles.add(shingle)
		}
		if '0' <= word[0] && word[0] <= '9' {
			numbers.add(mix(h))
		}
	})
	f.Words, f.Numbers = shingles.sum(), numbers.sum()
	return f
}

// Near reports whether two texts are the same page with small differences, such as another header. Texts that differ in
// many of their numbers are not near: they may contradict each other. Short texts are near only if their words are equal.
func Near(a, b Fingerprint) bool {
	if a.Count == 0 || b.Count == 0 {
		return false
	}
	if a.Exact == b.Exact && a.Count == b.Count {
		return true
	}
	return a.Count >= minNearWords && b.Count >= minNearWords &&
		bits.OnesCount64(a.Words^b.Words) <= maxWordBits && bits.OnesCount64(a.Numbers^b.Numbers) <= maxNumberBits
}

// simhash adds up the bits of hashes.
type simhash [64]int32

func (s *simhash) add(h uint64) {
	for i := range s {
		s[i] += int32(h>>i&1)<<1 - 1
	}
}

func (s *simhash) sum() (sum uint64) {
	for i, weight := range s {
		if weight > 0 {
			sum |= 1 << i
		}
	}
	return sum
}

const hashSeed = 0xcbf29ce484222325

// hash is FNV-1a, mixed: the high bits of short words would otherwise be alike.
func hash(seed uint64, text []byte) uint64 {
	for len(text) >= 8 {
		seed = mix(seed ^ binary.LittleEndian.Uint64(text))
		text = text[8:]
	}
	for _, c := range text {
		seed = (seed ^ uint64(c)) * 0x100000001b3
	}
	return mix(seed)
}

// mix is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
