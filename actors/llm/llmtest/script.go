// Package llmtest has a model for the tests of what calls one. It keeps the rules of llm.Model, which package modeltest checks. It has no
// wire format: modeltest.Run checks those of the providers. Only tests import it.
package llmtest

import (
	"context"
	"slices"
	"sync"

	"turnstone/actors/llm"
)

// Script is a model for tests. The function Play answers its calls.
type Script struct {
	// Play is llm.Model.Stream of a call. The first call has the number 1. It may emit after the call was cancelled: emit then only
	// returns the error of ctx.
	Play      func(ctx context.Context, call int, request llm.Request, emit func(llm.Chunk) error) error
	Prefilled bool // the result of Continues

	mu       sync.Mutex
	requests []llm.Request // guarded by mu
}

// Answer returns a model that answers every call with the same pieces of text, of one token each.
func Answer(pieces ...string) *Script {
	return &Script{Play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		for _, piece := range pieces {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: piece}); err != nil {
				return err
			}
		}
		if err := emit(llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{OutputTokens: len(pieces)}}); err != nil {
			return err
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
}

// Stream implements llm.Model.
func (s *Script) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	call := len(s.requests)
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Play(ctx, call, request, func(chunk llm.Chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return emit(chunk)
	})
}

// Requests returns the requests of all calls so far, in order.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Continues implements llm.Model.
func (s *Script) Continues() bool { return s.Prefilled }

// Ready implements llm.Model.
func (s *Script) Ready(context.Context) error { return nil }

// Family implements llm.Model.
func (s *Script) Family() string { return "script" }

var _ llm.Model = (*Script)(nil)
