// Package tokens estimates how many tokens a text has, for models that report no counts and for the texts of files. It knows nothing of
// models and files, which use it.
package tokens

import (
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"turnstone/protocol/clip"
)

// The limits of the estimate. Text is tokenised in windows, because the time for one long word is not linear in its
// length. The words that window borders cut add about one token in two hundred. Text beyond the sample is assumed to be
// like the sample.
const (
	window = 1 << 10
	sample = 64 << 10
)

// vocabulary returns the tokenizer. It loads the vocabulary (about 200,000 entries) on first use, because most providers
// report usage themselves.
var vocabulary = sync.OnceValue(codec.NewO200kBase)

// Estimate returns the approximate number of tokens in text, by OpenAI's o200k_base vocabulary. It is close for English
// and code in most models, and never exact. Its time is bounded for any text.
func Estimate(text string) int {
	if len(text) <= sample {
		return countWindows(text)
	}
	const windows = sample / window
	stride, counted, found := len(text)/windows, 0, 0
	for i := range windows {
		part := clip.Bytes(text[i*stride:], window)
		counted += len(part)
		found += countWindows(part)
	}
	return int(float64(found) / float64(counted) * float64(len(text)))
}

func countWindows(text string) int {
	found := 0
	for text != "" {
		part := clip.Bytes(text, window)
		text = text[len(part):]
		n, err := vocabulary().Count(strings.ToValidUTF8(part, "?"))
		if err != nil { // only at limits of the tokenizer, which a window does not reach
			n = len(part) / 4
		}
		found += n
	}
	return found
}
