package load

import (
	"math"
	"math/rand/v2"
)

// vocabulary is the number of distinct words. Word n occurs with a frequency proportional to 1/n, as in a natural
// language, so that a text is about as hard to compress as one that a person wrote.
const vocabulary = 8192

// AppendWord appends token n of a prose answer, escaped for use inside a JSON string. Different seeds give different
// texts, and no text repeats itself.
func AppendWord(to []byte, seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	to = appendSpelling(to, zipf(random))
	switch {
	case n%71 == 70:
		return append(to, `.\n\n`...)
	case n%13 == 12:
		return append(to, ". "...)
	}
	return append(to, ' ')
}

// zipf returns the rank of a random word. Log-uniform ranks follow Zipf's law.
func zipf(random *rand.Rand) uint64 { return uint64(math.Exp(random.Float64() * math.Log(vocabulary))) }

// appendSpelling appends the word of a rank. Frequent words, which have a low rank, are short.
func appendSpelling(to []byte, rank uint64) []byte {
	const consonants, vowels = "tnshrdlcmfwgypbvk", "aeiou"
	random := rand.New(rand.NewPCG(rank, 0))
	for syllables := 1 + int(math.Log(float64(rank))/3); syllables > 0; syllables-- {
		to = append(to, consonants[random.IntN(len(consonants))], vowels[random.IntN(len(vowels))])
		if random.IntN(3) == 0 {
			to = append(to, consonants[random.IntN(len(consonants))])
		}
	}
	return to
}
