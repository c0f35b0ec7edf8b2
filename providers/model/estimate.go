package model

import (
	"strings"

	"turnstone/actors/llm"
	"turnstone/protocol/clip"
	"turnstone/providers/tokens"
)

const (
	outputSample  = 8 << 10 // bytes of an answer; they stay in memory until the answer ends
	messageTokens = 4       // tokens of a message in addition to its text
)

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
	return tokens.Estimate(all.String()) + messageTokens*(len(request.Messages)+1) + pictures*llm.PictureTokens
}

// sample stores the start of a text that arrives in pieces, and the length of the whole text.
type sample struct {
	text   strings.Builder
	length int
}

func (s *sample) add(piece string) {
	s.length += len(piece)
	if free := outputSample - s.text.Len(); free > 0 {
		s.text.WriteString(clip.Bytes(piece, free))
	}
}

func (s *sample) tokens() int {
	if s.length == 0 {
		return 0
	}
	return max(1, tokens.Estimate(s.text.String())*s.length/max(1, s.text.Len()))
}
