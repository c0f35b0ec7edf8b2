package modelinput

import (
	"context"
	"fmt"
	"slices"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/actors/routing"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// maxContextMessages is the maximum number of messages that a model gets. It limits the delay of the first token: each
// message takes about 10 µs to be read, decoded, encoded and sent. A conversation of ordinary length has far fewer
// messages, so the model gets everything that fits into its context.
const maxContextMessages = 1000

// Request is the request of one model step.
type Request struct {
	llm.Request
	Trimmed bool              // older messages were left out
	Files   []protocol.Source // in the messages
	Reading *policy.Reading   // what the model reads in it
}

// Conversations reads what earlier messages contribute to a request. Package persistence/turns implements it.
type Conversations interface {
	// History reads the messages of a branch up to and including message, oldest first: the newest maxMessages of them,
	// and at most maxBytes of parts, but always message itself. more reports that older messages were left out. The
	// cost depends on the size of the result, not on the length of the conversation.
	History(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID,
		message protocol.MessageID, maxMessages, maxBytes int) (messages []turnlog.HistoryMessage, more bool, err error)
	// Instructions reads the versions of the instructions that a turn has. A version never changes.
	Instructions(ctx context.Context, s *turnlog.Spec) (*turnlog.Instructions, error)
}

// Consents reads to what an account consents. Package persistence/memory implements it.
type Consents interface {
	Granted(ctx context.Context, account protocol.AccountID) ([]protocol.MemorySource, error)
}

// Builder builds the requests of model steps.
type Builder struct {
	Conversations Conversations
	Texts         Store    // nil: no message has files
	Consents      Consents // nil: no account consents to anything
	Tools         *toolbox.Catalogue
}

// Build builds a request: the newest earlier messages with their files, and then the messages of this turn. The size of the
// latter reduces the space for the former. With wait, the error is ErrPending while a text was not read yet.
func (b *Builder) Build(ctx context.Context, p machine.CallInput, route routing.Route, wait bool) (*Request, error) {
	instructions, err := readInstructions(ctx, b.Conversations, p.Spec)
	if err != nil {
		return nil, err
	}
	size := len(instructions.Project) + len(instructions.Account)
	for _, message := range p.OwnMessages() {
		size += len(message.Text)
	}
	space := max(0, Space(route)-size)
	history, older, err := readHistory(ctx, b.Conversations, p.Spec, space)
	if err != nil {
		return nil, err
	}
	files := Files{Store: b.Texts, AccountID: p.Spec.AccountID, ProjectID: p.Spec.ProjectID, Question: p.Spec.Input, Space: space, Pictures: route.Pictures, Wait: wait}
	user := written(history)
	history, sources, trimmed, err := files.Show(ctx, history)
	if err != nil {
		return nil, err
	}
	trimmed = trimmed || older
	messages, input := p.Messages(history, trimmed)
	var offered []llm.Tool
	if !route.WithoutTools {
		access, err := b.access(ctx, p.Spec)
		if err != nil {
			return nil, err
		}
		offered = b.Tools.Offered(p.Spec.DisabledTools, access)
		if p.Cut {
			offered = append(offered, toolbox.ReadMore())
		}
	}
	request := &Request{llm.Request{
		Route: route.Name, Model: route.Model, System: systemPrompt(trimmed, len(sources) > 0 || p.Found, instructions), Messages: messages, TurnInput: input,
		Tools: offered, WithoutCalls: p.WithoutTools, HideTools: p.HideTools,
		ReasoningEffort: route.ReasoningEffort, PictureDetail: route.PictureDetail, MaxOutputTokens: route.MaxOutputTokens, FirstByte: route.FirstByte, Step: p.Step,
		Deadline: p.Spec.CreatedAt.Add(p.Waited + time.Duration(p.Spec.Routing.Completion.DeadlineSeconds)*time.Second),
	}, trimmed, sources, reading(&p, b.Tools, user, history, instructions, trimmed)}
	if route.Fallback {
		request.Deadline = time.Time{}
	}
	return request, nil
}

// access returns what the conversation of a turn can reach now. Most accounts consent to nothing, which needs no read from the
// store.
func (b *Builder) access(ctx context.Context, s *turnlog.Spec) (*toolbox.Access, error) {
	access := &toolbox.Access{Project: s.ProjectID != nil}
	if len(s.Granted) == 0 || b.Consents == nil {
		return access, nil
	}
	granted, err := b.Consents.Granted(ctx, s.AccountID)
	if err != nil {
		return nil, fmt.Errorf("reading the consents: %w", err)
	}
	for _, source := range granted {
		if slices.Contains(s.Granted, source) {
			access.Granted = append(access.Granted, source)
		}
	}
	return access, nil
}

// readInstructions reads the instructions that the account and the project of the conversation had when the turn started. Most
// turns have none, which needs no read from the store.
func readInstructions(ctx context.Context, store Conversations, s *turnlog.Spec) (*turnlog.Instructions, error) {
	if s.InstructionsVersion == 0 && s.AccountInstructions == 0 {
		return &turnlog.Instructions{}, nil
	}
	instructions, err := store.Instructions(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("reading the instructions: %w", err)
	}
	return instructions, nil
}

// readHistory reads the earlier messages and the user's message of this turn. In the first turn of a conversation that
// is only the turn's own input, which needs no read from the store.
func readHistory(ctx context.Context, store Conversations, s *turnlog.Spec, maxBytes int) ([]turnlog.HistoryMessage, bool, error) {
	if s.ParentMessageID == nil {
		return []turnlog.HistoryMessage{{
			Role: protocol.RoleUser, Status: protocol.MessageComplete, Parts: []protocol.Part{{Type: protocol.PartText, Text: s.Input}}, Attachments: s.Attachments,
		}}, false, nil
	}
	history, trimmed, err := store.History(ctx, s.AccountID, s.ConversationID, s.BranchID, s.UserMessageID, maxContextMessages, maxBytes)
	if err != nil {
		return nil, false, fmt.Errorf("reading the conversation: %w", err)
	}
	return history, trimmed, nil
}
