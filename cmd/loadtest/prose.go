package main

import (
	"math"
	"math/rand/v2"
)

// vocabulary is how many words there are. With the frequencies of a language (the nth word is as frequent as 1/n) a text of
// them is about as hard to compress as one that somebody wrote.
const vocabulary = 8192

// appendWord appends the nth token of an answer in prose, as it stands inside a JSON string. Answers with different seeds
// are different texts, and none repeats itself.
func appendWord(to []byte, seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	rank := math.Exp(random.Float64() * math.Log(vocabulary)) // log-uniform: Zipf's law
	to = appendSpelling(to, uint64(rank))
	switch {
	case n%71 == 70:
		return append(to, `.\n\n`...)
	case n%13 == 12:
		return append(to, ". "...)
	}
	return append(to, ' ')
}

// appendSpelling spells a word by its rank: the more frequent, the shorter.
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
