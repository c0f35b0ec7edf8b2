//go:build failpoint

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"turnstone/actors/llm"
	"turnstone/actors/toolbox"
	"turnstone/cmd/turnstone/admin"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// A build with the tag failpoint, which only tests use, can be made to fail: from its start by TURNSTONE_FAILPOINTS,
// and at run time by PUT /failpoints on the internal listener. It also has a tool with a side effect, which the product
// does not have.
const (
	failpointsVariable = "TURNSTONE_FAILPOINTS"
	effectVariable     = "TURNSTONE_FAILPOINT_EFFECT_URL"
	maxFailpointSpec   = 4 << 10
)

func armFailpoints(environment map[string]string) error {
	failpoint.SetErrorFunc(func(point failpoint.Point) error {
		err := protocol.Errorf(protocol.CodeUnavailable, "failpoint %s", point)
		if point == failpoint.TurnAfterModelFirstByte {
			return &llm.Error{Code: "model_unavailable", Retryable: true, Cut: true, Err: err}
		}
		return err
	})
	if err := failpoint.Arm(environment[failpointsVariable]); err != nil {
		return fmt.Errorf("%s: %w", failpointsVariable, err)
	}
	return nil
}

// withFailpoints adds PUT /failpoints, which arms the points named in its body and disarms all others, and GET
// /failpoints, which returns how often each point fired. PUT /holds/{name} pauses answers of the scripted model at
// their hold of that name; DELETE /holds/{name} resumes them.
func withFailpoints(internal http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", internal)
	mux.HandleFunc("GET /failpoints", func(w http.ResponseWriter, _ *http.Request) {
		admin.WriteJSON(w, http.StatusOK, failpoint.Fired())
	})
	mux.HandleFunc("PUT /failpoints", func(w http.ResponseWriter, r *http.Request) {
		spec, err := io.ReadAll(io.LimitReader(r.Body, maxFailpointSpec))
		if err == nil {
			err = failpoint.Arm(string(spec))
		}
		if err != nil {
			admin.Fail(w, protocol.Errorf(protocol.CodeInvalid, "arming the failpoints: %w", err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT /holds/{name}", func(w http.ResponseWriter, r *http.Request) {
		failpoint.HoldAt(r.PathValue("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /holds/{name}", func(w http.ResponseWriter, r *http.Request) {
		failpoint.Release(r.PathValue("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func failpointTools() []toolbox.Tool {
	if url := os.Getenv(effectVariable); url != "" {
		return []toolbox.Tool{effectTool{url: url}, effectTool{url: url, asks: true}}
	}
	return nil
}

// effectTool is a tool with a side effect: it posts its input to a stand-in, which records it.
type effectTool struct {
	url  string
	asks bool // its calls need an approval
}

// Spec implements toolbox.Tool.
func (e effectTool) Spec() toolbox.Spec {
	spec := toolbox.Spec{
		Name: "effect", Kind: "connector", Title: "Effect", Description: "Records its input permanently.",
		Effect: protocol.EffectWrite, Own: true, Risk: protocol.RiskLow, Reversibility: protocol.Irreversible,
		Schema: json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`),
	}
	if e.asks {
		spec.Name, spec.Effect, spec.Own = "asked_effect", protocol.EffectSend, false
	}
	return spec
}

// Run implements toolbox.Tool.
func (e effectTool) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(call.Input))
	if err != nil {
		return toolbox.Result{}, err
	}
	response, err := (&http.Client{}).Do(request)
	if err != nil {
		return toolbox.Result{}, err
	}
	defer func() { _ = response.Body.Close() }()
	output, err := io.ReadAll(response.Body)
	return toolbox.Result{Output: string(output)}, err
}
