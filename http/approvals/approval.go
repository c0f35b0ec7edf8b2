// Package approvals handles the requests that read approvals of tool calls. Decisions are sent to POST /chat/steering (package
// chat).
//
// It contains no SQL and no state.
package approvals

import (
	"context"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

// Store reads approvals; see package persistence/approvals.
type Store interface {
	Get(ctx context.Context, account protocol.AccountID, id protocol.ApprovalID) (*protocol.Approval, error)
	List(ctx context.Context, account protocol.AccountID, filter string, after *protocol.ApprovalID, limit int) (page []protocol.Approval, next *protocol.ApprovalID, err error)
}

// Handlers handle the requests for approvals.
type Handlers struct {
	Store Store
	Keys  *auth.Keys
}

type listInput struct {
	State string `query:"state" enum:"pending,decided,any" default:"pending" doc:"pending: those that can be decided; decided: all others."`
	resource.PageInput
}

func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.Approval]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "approvals "+in.State, func(after *protocol.ApprovalID) ([]protocol.Approval, *protocol.ApprovalID, error) {
		return h.Store.List(ctx, caller.AccountID, in.State, after, in.Limit)
	})
}

type getInput struct {
	ApprovalID protocol.ApprovalID `path:"approval_id"`
}

func (h *Handlers) get(ctx context.Context, in *getInput) (*resource.Body[protocol.Approval], error) {
	approval, err := h.Store.Get(ctx, exchange.CallerOf(ctx).AccountID, in.ApprovalID)
	if err != nil {
		return nil, err
	}
	return resource.OK(*approval), nil
}
