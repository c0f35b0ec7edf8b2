package model

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"turnstone/actors/llm"
)

// The ends of an answer that the provider could not finish: because it failed, or because of what the model wrote.
const (
	stopFailed   llm.Stop = "failed"
	stopUnusable llm.Stop = "unusable"
)

// stops maps the reasons for the end of an answer, as plainReason returns them, to what they mean. The wire formats share
// the table, because servers put the words of one vendor into the format of another.
var stops = func() map[string]llm.Stop {
	table := map[string]llm.Stop{}
	for stop, reasons := range map[llm.Stop]string{
		llm.StopEndTurn:   "stop end_turn stop_sequence eos eos_token end complete completed finished",
		llm.StopToolCalls: "tool_calls tool_call tool_use function_call",
		llm.StopMaxTokens: "length max_tokens max_output_tokens max_completion_tokens max_length model_length " +
			"model_context_window_exceeded context_length context_length_exceeded token_limit incomplete pause_turn",
		llm.StopRefusal: "content_filter content_filtered refusal refused safety sensitive recitation blocklist " +
			"prohibited_content spii image_safety guardrail_intervened guardrails language moderation content_policy",
		stopFailed: "error failed failure abort aborted cancelled canceled insufficient_system_resource network_error " +
			"server_error internal_error overloaded timeout",
		stopUnusable: "other malformed_function_call unexpected_tool_call repetition_truncation",
	} {
		for reason := range strings.FieldsSeq(reasons) {
			table[plainReason(reason)] = stop
		}
	}
	return table
}()

// plainReason returns a reason in lower case and without separators: servers write max_tokens, MAX_TOKENS and MaxTokens.
func plainReason(reason string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(reason))
}

// Finish ends the answer for the reason that the wire format names; empty if it names none. An unknown reason ends a
// complete answer if there is one.
func (c *Call) Finish(reason string) error {
	stop, known := stops[plainReason(reason)]
	switch {
	case stop == stopFailed, stop == stopUnusable:
		failure := unavailable(fmt.Errorf("the provider ended the answer with the reason %q", c.client.clean(reason, c.request)))
		failure.Unusable = stop == stopUnusable
		return failure
	case stop == llm.StopRefusal:
		c.Refuse()
	case !known:
		stop = llm.StopEndTurn
		if reason != "" {
			c.client.log().Warn("unknown reason for the end of an answer", zap.String("model", c.request.Model),
				zap.String("reason", c.client.clean(reason, c.request)))
		}
	case stop == llm.StopToolCalls:
		stop = llm.StopEndTurn // Stop decides by the calls
	}
	return c.Stop(stop)
}
