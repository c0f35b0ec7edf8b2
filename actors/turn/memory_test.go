package turn

import (
	"context"
	"sync"

	"turnstone/actors/llm"
)

// script is a model whose calls are implemented by the function play.
type script struct {
	mu        sync.Mutex
	requests  []llm.Request
	continues bool
	play      func(ctx context.Context, call int, request llm.Request, emit func(llm.Chunk) error) error
}

func (s *script) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	call := len(s.requests)
	s.mu.Unlock()
	return s.play(ctx, call, request, emit)
}

func (s *script) Continues() bool             { return s.continues }
func (s *script) Ready(context.Context) error { return nil }
func (s *script) Family() string              { return "script" }

// scriptedAnswer returns a model that answers every call with the same pieces of text.
func scriptedAnswer(pieces ...string) *script {
	return &script{play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		for _, piece := range pieces {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: piece}); err != nil {
				return err
			}
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
}
