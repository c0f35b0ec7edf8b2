package charset

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gogs/chardet"
	htmlcharset "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Guess is the encoding of a text.
type Guess struct {
	encoding.Encoding        // that decodes it
	Name              string // as in the encoding standard of browsers
	Certainty         int    // in percent; 100: the text says it, or it is valid UTF-8
}

// UTF8 is the guess for valid UTF-8.
var UTF8 = Guess{utf.UTF8BOM, "utf-8", certain}

const certain = 100

// marks are the byte order marks of encodings, the longer ones first.
var marks = []struct {
	mark  []byte
	guess Guess
}{
	{[]byte{0xFF, 0xFE, 0, 0}, Guess{utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM), "utf-32le", certain}},
	{[]byte{0, 0, 0xFE, 0xFF}, Guess{utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM), "utf-32be", certain}},
	{[]byte{0xFF, 0xFE}, Guess{utf.UTF16(utf.LittleEndian, utf.ExpectBOM), "utf-16le", certain}},
	{[]byte{0xFE, 0xFF}, Guess{utf.UTF16(utf.BigEndian, utf.ExpectBOM), "utf-16be", certain}},
	{[]byte{0xEF, 0xBB, 0xBF}, UTF8},
}

const (
	// sampleSize is the number of bytes by which an encoding is recognized.
	sampleSize = 64 << 10
	// enough is the size up to which a sample is repeated: the library counts the frequent characters of the scripts of East
	// Asia only in a text with more than ten of them.
	enough = 1 << 10
)

// Detect returns the encoding of a text: that of its byte order mark, else UTF-8 if it is valid as such, else the one it looks
// like. A text that is mostly valid UTF-8 is UTF-8 with a few damaged characters.
func Detect(raw []byte) Guess {
	for _, one := range marks {
		if bytes.HasPrefix(raw, one.mark) {
			return one.guess
		}
	}
	if wide, is := wideGuess(raw[:min(len(raw), sampleSize)]); is && len(raw)%2 == 0 {
		return wide
	}
	sample := sampleOf(raw)
	if bytes.Contains(sample, []byte("\x1b$")) { // of seven bits, so it is valid UTF-8, too
		if guess, ok := named("iso-2022-jp", certain); ok && !strings.ContainsRune(guess.sample(sample), utf8.RuneError) {
			return guess
		}
	}
	if utf8.Valid(raw) || mostlyUTF8(sample) {
		return UTF8
	}
	return narrowGuess(sample)
}

// Decode returns a text as UTF-8. Invalid bytes are replaced.
func (g Guess) Decode(raw []byte) string {
	text, err := g.NewDecoder().Bytes(raw)
	if err != nil {
		text = raw
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "\uFFFD"), "\uFEFF")
}

// sample decodes a sample, which may end within a character.
func (g Guess) sample(raw []byte) string {
	text := g.Decode(raw)
	for range utf8.UTFMax {
		text = strings.TrimSuffix(text, "\uFFFD")
	}
	return text
}

// sampleOf returns the part of a text by which its encoding is recognized. The beginning of a long table may be ASCII.
func sampleOf(raw []byte) []byte {
	first := bytes.IndexFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf })
	if first > sampleSize/2 {
		raw = raw[first-sampleSize/4:]
	}
	return raw[:min(len(raw), sampleSize)]
}

func named(name string, certainty int) (Guess, bool) {
	e, canonical := htmlcharset.Lookup(name)
	return Guess{e, canonical, certainty}, e != nil && canonical != "utf-8" && canonical != "replacement"
}

// mostlyUTF8 reports whether a text has more characters of several bytes than invalid bytes.
func mostlyUTF8(sample []byte) bool {
	letters, wrong := 0, 0
	for rest := sample; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			wrong++
		case n > 1:
			letters++
		}
		rest = rest[n:]
	}
	return letters > wrong
}

// wideGuess recognizes UTF-16 without a mark. Texts have no NUL in other encodings, and UTF-16 has one in each character of
// ASCII, as spaces and the ends of lines are.
func wideGuess(sample []byte) (Guess, bool) {
	sample = sample[:len(sample)&^1]
	var nuls [2]int
	for i, b := range sample {
		if b == 0 {
			nuls[i%2]++
		}
	}
	guess := Guess{utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), "utf-16le", certain}
	if nuls[0] > nuls[1] {
		guess = Guess{utf.UTF16(utf.BigEndian, utf.IgnoreBOM), "utf-16be", certain}
	}
	if nuls[0] == nuls[1] { // only text of East Asia has neither spaces nor ends of lines
		return kanaGuess(sample)
	}
	return guess, readsAsText(guess.sample(sample))
}

// kanaGuess recognizes UTF-16 by the high byte of kana and the punctuation of East Asia, 0x30, which is a digit in others.
func kanaGuess(sample []byte) (Guess, bool) {
	const often = 4
	var high [2]int
	for i, b := range sample {
		if b == 0x30 {
			high[i%2]++
		}
	}
	guess := Guess{utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), "utf-16le", certain * 3 / 4}
	if high[0] > high[1] {
		guess = Guess{utf.UTF16(utf.BigEndian, utf.IgnoreBOM), "utf-16be", certain * 3 / 4}
	}
	found := max(high[0], high[1])
	return guess, found > 2 && found*2*often >= len(sample) && found > 2*min(high[0], high[1]) && !utf8.Valid(sample) && readsAsText(guess.sample(sample))
}

// readsAsText reports whether a text has only characters that texts have.
func readsAsText(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r) || !unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return text != ""
}

// unknown are the encodings that the library does not know, with a confidence to compare with those of the others. The library does
// not find the most common one, the last, in a few words.
var unknown = []chardet.Result{{Charset: "IBM866", Confidence: 12}, {Charset: "windows-874", Confidence: 20}, {Charset: "windows-1252", Confidence: 1}}

// candidates returns the encodings that a text may have. Markup and other words of ASCII look like English, so for a text of
// another script than Latin, only its own words count for the encodings of one byte.
func candidates(sample []byte) []chardet.Result {
	found := detectAll(sample)
	if own := ownWords(sample); own != nil {
		isSingle := func(one chardet.Result) bool {
			return common[strings.ToLower(one.Charset)].to == 0 && one.Charset != "Shift_JIS"
		}
		found = slices.DeleteFunc(found, isSingle)
		for _, one := range detectAll(own) {
			if isSingle(one) {
				found = append(found, one)
			}
		}
	}
	return append(found, unknown...)
}

func detectAll(sample []byte) []chardet.Result {
	repeated := sample
	for len(repeated) < enough && len(sample) > 0 {
		repeated = append(append(bytes.Clone(repeated), '\n'), sample...)
	}
	found, err := chardet.NewTextDetector().DetectAll(repeated)
	if err != nil {
		return nil
	}
	return found
}

// ownWords returns the words of a text that have letters outside of ASCII, if these are most of their letters; nil if not.
func ownWords(sample []byte) []byte {
	var own []byte
	isLetter := func(c byte) bool { return c >= utf8.RuneSelf || c|0x20 >= 'a' && c|0x20 <= 'z' }
	high := 0
	for start := 0; start < len(sample); {
		end, of := start, 0
		for end < len(sample) && isLetter(sample[end]) {
			if sample[end] >= utf8.RuneSelf {
				of++
			}
			end++
		}
		if of > 0 {
			own, high = append(append(own, sample[start:end]...), ' '), high+of
		}
		start = end + 1
	}
	const most, of = 7, 10
	if high*of < len(own)*most {
		return nil
	}
	return own
}

// preferred reports whether the first of two equally likely encodings is taken: the most common one, then the first by name.
func preferred(one, other string) bool {
	const most = "windows-1252"
	return other != most && (one == most || one < other)
}

// narrowGuess returns the best of the encodings that the library finds possible. It knows the frequency of characters, but
// hardly how they follow each other in a short text; see plausibility.
func narrowGuess(sample []byte) Guess {
	best, bestScore := Guess{charmap.Windows1252, "windows-1252", 0}, -1.0
	for _, one := range candidates(sample) {
		guess, ok := named(one.Charset, min(one.Confidence, certain-1))
		if !ok {
			continue
		}
		const weight = 80
		share := plausibility(guess.sample(sample), sample, guess.Name)
		score := float64(one.Confidence) + weight*share
		if guess.Name == "euc-jp" || guess.Name == "euc-kr" {
			score++ // their characters are fewer than those of GB 18030, so they match less by chance
		}
		// The library returns what it finds equally likely in any order.
		if score > bestScore || score == bestScore && preferred(guess.Name, best.Name) {
			guess.Certainty = min(certain-1, int(score*certain/(certain+weight)))
			best, bestScore = guess, score
		}
	}
	return best
}
