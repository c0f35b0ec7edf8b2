package server

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"turnstone/actors/llm"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
	"turnstone/protocol/researchlog"
	"turnstone/providers/model/scripted"
)

// StepTime is how long the model takes for a step of a research task, unless a directive in the question says otherwise.
const StepTime = 2 * time.Second

// stepOf returns the request for a step of a research task; ok is false for any other request.
func stepOf(body []byte) (request llm.Request, ok bool) {
	var wire struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &wire) != nil || len(wire.Messages) != 2 || !strings.HasPrefix(wire.Messages[0].Content, researchlog.StepMarker) {
		return llm.Request{}, false
	}
	return llm.Request{
		System: wire.Messages[0].Content, Messages: []llm.Message{{Role: "user", Text: wire.Messages[1].Content}}, MaxOutputTokens: 1 << 20,
	}, true
}

// respondStep answers a step as the scripted model does, after the time that a step takes.
func (u *upstream) respondStep(conn net.Conn, request llm.Request) error {
	after := StepTime
	if script, ok := load.LastScript([]byte(request.Messages[0].Text)); ok {
		after = script.First
	}
	if err := clock.Sleep(u.ctx, after); err != nil {
		return err
	}
	var text strings.Builder
	err := scripted.New(scripted.Options{}).Stream(u.ctx, request, func(chunk llm.Chunk) error {
		if chunk.Kind == llm.ChunkText {
			text.WriteString(chunk.Text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	quoted, err := json.Marshal(text.String())
	if err != nil {
		return fmt.Errorf("encoding a step: %w", err)
	}
	s := &paced{script: load.Script{Words: true}, sent: text.Len() / 4}
	s.pending = append(s.pending, streamHead...)
	s.content(quoted[1 : len(quoted)-1])
	s.finish()
	_, err = conn.Write(s.pending)
	return err
}
