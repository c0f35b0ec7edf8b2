package model

import (
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"turnstone/actors/llm"
	"turnstone/protocol/foreign"
)

// The limits of the estimate. Text is tokenised in windows, because the time for one long word is not linear in its
// length. The words that window borders cut add about one token in two hundred. Text beyond the sample is assumed to be
// like the sample.
const (
	estimateWindow = 1 << 10
	estimateSample = 64 << 10
	outputSample   = 8 << 10 // of an answer; it stays in memory until the answer ends
	messageTokens  = 4       // tokens of a message in addition to its text
)

// tokens returns the tokenizer. It loads the vocabulary (about 200,000 entries) on first use, because most providers
// report usage themselves.
var tokens = sync.OnceValue(codec.NewO200kBase)

// Estimate returns the approximate number of tokens in text, by OpenAI's o200k_base vocabulary. It is close for English
// and code in most models, and never exact. Its time is bounded for any text.
func Estimate(text string) int {
	if len(text) <= estimateSample {
		return countWindows(text)
	}
	const windows = estimateSample / estimateWindow
	stride, counted, found := len(text)/windows, 0, 0
	for i := range windows {
		window := foreign.Prefix(text[i*stride:], estimateWindow)
		counted += len(window)
		found += countWindows(window)
	}
	return int(float64(found) / float64(counted) * float64(len(text)))
}

func countWindows(text string) int {
	found := 0
	for text != "" {
		window := foreign.Prefix(text, estimateWindow)
		text = text[len(window):]
		n, err := tokens().Count(strings.ToValidUTF8(window, "?"))
		if err != nil { // only at limits of the tokenizer, which a window does not reach
			n = len(window) / 4
		}
		found += n
	}
	return found
}

// EstimateRequest returns the approximate number of input tokens of request.
func EstimateRequest(request llm.Request) int {
	var all strings.Builder
	pictures := 0
	all.WriteString(request.System)
	for _, message := range request.Messages {
		all.WriteString(message.Text)
		pictures += len(message.Pictures)
		for _, call := range message.ToolCalls {
			all.WriteString(call.Name)
			all.Write(call.Input)
		}
	}
	for _, tool := range request.Tools {
		all.WriteString(tool.Name)
		all.WriteString(tool.Description)
		all.Write(tool.Schema)
	}
	return Estimate(all.String()) + messageTokens*(len(request.Messages)+1) + pictures*llm.PictureTokens
}

// sample stores the start of a text that arrives in pieces, and the length of the whole text.
type sample struct {
	text   strings.Builder
	length int
}

func (s *sample) add(piece string) {
	s.length += len(piece)
	if free := outputSample - s.text.Len(); free > 0 {
		s.text.WriteString(foreign.Prefix(piece, free))
	}
}

func (s *sample) tokens() int {
	if s.length == 0 {
		return 0
	}
	return max(1, Estimate(s.text.String())*s.length/max(1, s.text.Len()))
}
