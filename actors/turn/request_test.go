package turn

import (
	"context"
	"strings"
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestThatMessagesWereLeftOutIsStoredWithTheFirstOutput(t *testing.T) {
	for name, before := range map[string][]llm.Chunk{
		"at once":          nil,
		"after some usage": {{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			store := actorstest.NewMemory()
			store.Messages = []turnlog.HistoryMessage{{Role: protocol.RoleUser, Status: protocol.MessageComplete, Parts: []protocol.Part{{Type: protocol.PartText, Text: "the last of many"}}}}
			var first string // the events of the first append
			stored := make(chan struct{})
			store.OnAppend = func(batch *turnlog.Append, commit func() error, done func(error)) {
				if first == "" {
					first = kinds(batch.Frames)
					defer close(stored)
				}
				err := commit()
				store.Appends.Go(func() { done(err) })
			}
			model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
				for _, chunk := range append(before, llm.Chunk{Kind: llm.ChunkText, Text: "fine"}) {
					if err := emit(chunk); err != nil {
						return err
					}
				}
				select {
				case <-stored:
				case <-ctx.Done():
				}
				return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
			}}
			n := startNode(t, store, model, nil)
			spec := startTurn(t, n, "hi")
			if got := kinds(read(t, n, spec, 0, nil)); strings.Count(got, "notice") != 1 {
				t.Errorf("events: %s", got)
			}
			if !strings.HasPrefix(first, "notice answer.started") {
				t.Errorf("the first append contains %q", first)
			}
		})
	}
}
