package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/routing"
	"turnstone/cmd/turnstone/connect"
	"turnstone/protocol"
	"turnstone/providers/model/open"
	"turnstone/providers/model/scripted"
)

const (
	// routeTimeout bounds the two completions of a route. A local server may load its model first.
	routeTimeout = 2 * time.Minute
	// probeTokens limits each completion. Some models reason first.
	probeTokens = 512
)

// routes makes one small completion with every route, and another one with a tool. It checks nothing if answers are
// scripted.
func (p *installation) routes(ctx context.Context) (findings []finding) {
	models, model, err := connect.Models(p.config, zap.NewNop())
	if err != nil || model.Family() == scripted.Family {
		return nil // reported by the check of the model
	}
	var tried []routing.Key
	for _, route := range slices.Concat(
		models.Routes[protocol.ProfileBalanced], models.Routes[protocol.ProfileDeepReasoning], models.Routes[protocol.ProfileCoding], models.Title,
	) {
		if !slices.Contains(tried, route.Key()) {
			tried = append(tried, route.Key())
			findings = append(findings, tryRoute(ctx, model, route))
		}
	}
	return findings
}

func tryRoute(ctx context.Context, model *open.Routed, route routing.Route) finding {
	ctx, cancel := context.WithTimeout(ctx, routeTimeout)
	defer cancel()
	name := route.Model
	if route.Name != "" {
		name = route.Name + " (" + route.Model + ")"
	}
	f := finding{what: "completion of " + name, remedy: "see docs/providers.md for what the error means"}
	request := llm.Request{
		Route: route.Name, Model: route.Model, ReasoningEffort: route.ReasoningEffort, MaxOutputTokens: min(probeTokens, route.MaxOutputTokens),
		FirstByte: route.FirstByte, Step: 1, TurnInput: 1, System: "You check whether a service can reach you. Answer briefly.",
		Messages: []llm.Message{{Role: protocol.RoleUser, Text: "Answer with the word ok."}},
	}
	if _, f.err = complete(ctx, model, request); f.err != nil {
		return f
	}
	if !route.WithoutTools {
		request.Messages[0].Text = "Call the tool ping."
		request.Tools = []llm.Tool{{Name: "ping", Description: "Checks that tools work.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}
		called, err := complete(ctx, model, request)
		switch {
		case err != nil:
			f.notes = append(f.notes, fmt.Sprintf(`with a tool it failed; set "tools": false if the model has none: %s`, errorLine(err)))
		case called:
			f.notes = append(f.notes, "it calls tools")
		default:
			f.notes = append(f.notes, "it did not call the tool that it was asked to call")
		}
	}
	f.notes = append(f.notes, model.Lessons(route.Name, route.Model)...)
	return f
}

// complete makes one completion. called reports whether it contains a tool call.
func complete(ctx context.Context, model llm.Model, request llm.Request) (called bool, err error) {
	answered := false
	err = model.Stream(ctx, request, func(chunk llm.Chunk) error {
		called = called || chunk.Kind == llm.ChunkToolCall
		answered = answered || called || strings.TrimSpace(chunk.Text) != ""
		return nil
	})
	if err == nil && !answered {
		err = errors.New("the answer is empty")
	}
	return called, err
}

// errorLine returns the text of an error without line breaks.
func errorLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
