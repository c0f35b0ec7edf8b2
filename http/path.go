package http

import (
	"context"
	"encoding"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"turnstone/protocol"
)

// pathParam is a name in braces: how its value is spelled, and, where a body follows, whether the caller may see what it
// names. The check stands before the body is looked at, so that no 415 or 422 tells that a foreign identifier exists.
type pathParam struct {
	parse func(string) error
	owned func(s *Server, ctx context.Context, account protocol.AccountID, value string) error
}

// pathParams lists every name that a route's path may hold.
var pathParams = map[string]pathParam{
	"conversation_id": {parse: identifier[protocol.ConversationID], owned: (*Server).ownsConversation},
	"session_id":      {parse: identifier[protocol.SessionID]},
	"turn_id":         {parse: identifier[protocol.TurnID]},
	"message_id":      {parse: identifier[protocol.MessageID]},
	"branch_id":       {parse: identifier[protocol.BranchID]},
	"follow_up_id":    {parse: identifier[protocol.FollowUpID], owned: (*Server).ownsFollowUp},
	"provider":        {parse: func(string) error { return nil }},
}

func identifier[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) error {
	return P(new(T)).UnmarshalText([]byte(text))
}

// checkPath answers 404 for an identifier that is malformed, and, before a body is read, for one that is not the
// caller's. Other handlers find that out themselves, in the one statement that they run anyway.
func (s *Server) checkPath(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	for _, name := range namesIn(op.Path) {
		if pathParams[name].parse(ctx.Param(name)) != nil {
			s.failOperation(ctx, &protocol.Error{Code: protocol.CodeNotFound})
			return
		}
	}
	if op.RequestBody != nil && op.Metadata["unowned"] != true {
		if err := s.checkOwner(ctx, op); err != nil {
			s.failOperation(ctx, err)
			return
		}
	}
	next(ctx)
}

func (s *Server) checkOwner(ctx huma.Context, op *huma.Operation) error {
	for _, name := range namesIn(op.Path) {
		if owned := pathParams[name].owned; owned != nil {
			if err := owned(s, ctx.Context(), callerOf(ctx.Context()).AccountID, ctx.Param(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) failOperation(ctx huma.Context, err error) {
	r, w := humachi.Unwrap(ctx)
	s.fail(w, r, err)
}

// namesIn lists the names in braces of a pattern.
func namesIn(pattern string) []string {
	var names []string
	for segment := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(segment, "{") {
			names = append(names, strings.Trim(segment, "{}"))
		}
	}
	return names
}

func (s *Server) ownsConversation(ctx context.Context, account protocol.AccountID, value string) error {
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(value)); err != nil {
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	return s.DB.OwnsConversation(ctx, account, id)
}

func (s *Server) ownsFollowUp(ctx context.Context, account protocol.AccountID, value string) error {
	var id protocol.FollowUpID
	if err := id.UnmarshalText([]byte(value)); err != nil {
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	return s.DB.OwnsFollowUp(ctx, account, id)
}
