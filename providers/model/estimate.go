package model

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"turnstone/actors"
)

// The estimate's bounds. Text is counted in windows, because the cost of one long word is not linear in its length;
// a cut word costs a token too many in about two hundred. Beyond the sample the rest is taken to be like it.
const (
	estimateWindow = 1 << 10
	estimateSample = 64 << 10
	outputSample   = 8 << 10 // of an answer, which is held while it lasts
	messageTokens  = 4       // what a message costs beside its text
)

// tokens loads the vocabulary (about 200,000 entries) when it is first needed; most providers count for themselves.
var tokens = sync.OnceValue(codec.NewO200kBase)

// Estimate is about how many tokens text has, by OpenAI's o200k_base vocabulary: near for English and code in most
// models, never exact. It takes bounded time for any text.
func Estimate(text string) int {
	if len(text) <= estimateSample {
		return countWindows(text)
	}
	const windows = estimateSample / estimateWindow
	stride, counted, found := len(text)/windows, 0, 0
	for i := range windows {
		window := clip(text[i*stride:], estimateWindow)
		counted += len(window)
		found += countWindows(window)
	}
	return int(float64(found) / float64(counted) * float64(len(text)))
}

func countWindows(text string) int {
	found := 0
	for text != "" {
		window := clip(text, estimateWindow)
		text = text[len(window):]
		n, err := tokens().Count(strings.ToValidUTF8(window, "?"))
		if err != nil { // only the matcher's own limits, which a window does not reach
			n = len(window) / 4
		}
		found += n
	}
	return found
}

// clip takes at most limit bytes and cuts no character.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for end := limit; end > max(0, limit-utf8.UTFMax); end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:limit]
}

// EstimateRequest is about how many tokens a model reads for request.
func EstimateRequest(request actors.ModelRequest) int {
	var all strings.Builder
	all.WriteString(request.System)
	for _, message := range request.Messages {
		all.WriteString(message.Text)
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
	return Estimate(all.String()) + messageTokens*(len(request.Messages)+1)
}

// sample keeps the beginning of a text that comes in pieces, and the length of all of it.
type sample struct {
	text   strings.Builder
	length int
}

func (s *sample) add(piece string) {
	s.length += len(piece)
	if room := outputSample - s.text.Len(); room > 0 {
		s.text.WriteString(clip(piece, room))
	}
}

func (s *sample) tokens() int {
	if s.length == 0 {
		return 0
	}
	return max(1, Estimate(s.text.String())*s.length/max(1, s.text.Len()))
}
