package research

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
)

// taskSteeringRequest is the body of a steering command. Its type determines which other fields apply.
type taskSteeringRequest struct {
	Type             protocol.ResearchSteeringType `json:"type" enum:"input,plan,write_now"`
	ClientSteeringID string                        `json:"client_steering_id,omitempty" maxLength:"128" doc:"For input: required; otherwise optional. A name for the command that the client chooses: a command that is repeated with the same name is accepted once."`
	Input            json.RawMessage               `json:"input,omitempty" doc:"For input: a text of up to 16,000 characters, or a list of texts as in POST /chat."`
	Strike           []string                      `json:"strike,omitempty" maxItems:"24" doc:"For plan: the step_id of questions that are not researched any more."`
	Add              []string                      `json:"add,omitempty" maxItems:"10" doc:"For plan: further questions, of up to 400 characters."`
}

type taskSteeringInput struct {
	InTask
	Body taskSteeringRequest
}

func (h *Handlers) steer(ctx context.Context, in *taskSteeringInput) (*resource.Body[*protocol.ResearchReceipt], error) {
	command, err := in.Body.command()
	if err != nil {
		return nil, err
	}
	receipt, err := h.Tasks.Steer(ctx, exchange.CallerOf(ctx).AccountID, in.TaskID, command)
	if err != nil {
		return nil, err
	}
	return resource.OK(receipt), nil
}

// command returns the request as a command.
func (b *taskSteeringRequest) command() (*researchlog.Steering, error) {
	command := &researchlog.Steering{SteeringID: protocol.NewSteeringID(), ClientID: strings.TrimSpace(b.ClientSteeringID), Kind: b.Type, Strike: b.Strike}
	switch b.Type {
	case protocol.ResearchInput:
		if command.ClientID == "" {
			return nil, protocol.Invalid("body.client_steering_id", "is required")
		}
		text, err := inputText(b.Input)
		if err != nil {
			return nil, err
		}
		command.Text = text
	case protocol.ResearchPlan:
		for _, text := range b.Add {
			if text = strings.TrimSpace(foreign.Clean(text)); text == "" || utf8.RuneCountInString(text) > protocol.MaxResearchStep {
				return nil, protocol.Invalid("body.add", fmt.Sprintf("must have questions of 1 to %d characters", protocol.MaxResearchStep))
			}
			command.Add = append(command.Add, text)
		}
		if len(command.Add)+len(command.Strike) == 0 {
			return nil, protocol.Invalid("body.add", "is required, unless strike has a question")
		}
	}
	if command.ClientID == "" {
		command.ClientID = command.SteeringID.String()
	}
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode([]any{command.Kind, command.Text, command.Strike, command.Add}) // a hash takes everything
	command.Digest = hex.EncodeToString(hash.Sum(nil))
	return command, nil
}

// inputText reads the field input: a text, or a list of items of the type text.
func inputText(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		var items []protocol.InputItem
		if err := json.Unmarshal(raw, &items); err != nil || len(items) > protocol.MaxInputItems {
			return "", protocol.Invalid("body.input", fmt.Sprintf("must be a text, or a list of at most %d texts", protocol.MaxInputItems))
		}
		for _, item := range items {
			if item.Type != "text" {
				return "", protocol.Invalid("body.input", "must contain texts only")
			}
		}
		text = protocol.JoinTexts(items)
	}
	return text, protocol.CheckSteering(text, 0)
}
