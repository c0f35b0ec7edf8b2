package chat

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/tools"
	"turnstone/persistence/followups/queues"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

type listFollowUpsInput struct {
	resource.InConversation
	resource.PageInput
	State string `query:"state" enum:"open,any" default:"any" doc:"open: only follow-ups that are queued or held."`
}

func (h *Handlers) listFollowUps(ctx context.Context, in *listFollowUpsInput) (*resource.Body[protocol.FollowUpList], error) {
	scope := "follow-ups " + in.State + " " + in.ConversationID.String()
	after, err := resource.OpenCursor[queues.Position](exchange.CallerOf(ctx), h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	page, err := h.FollowUps.ListFollowUps(ctx, caller.AccountID, in.ConversationID, in.State == "any", after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.OK(protocol.FollowUpList{List: resource.Listed(caller, h.Keys, scope, page.Items, page.Next).Body, QueueVersion: page.QueueVersion}), nil
}

type followUpPath struct {
	resource.InConversation
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
}

func (h *Handlers) getFollowUp(ctx context.Context, in *followUpPath) (*resource.Versioned[protocol.FollowUp], error) {
	return resource.WithETag(h.FollowUps.GetFollowUp(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.FollowUpID))
}

type createFollowUpInput struct {
	resource.InConversation
	Body struct {
		Content     string               `json:"content" doc:"The message. May be empty if it has files."`
		Attachments []protocol.FileID    `json:"attachments,omitempty" maxItems:"50" doc:"The files of the message, at most 20 different ones."`
		Tools       *protocol.ToolChoice `json:"tools,omitempty" doc:"The tools that the turn may use. Absent: all that the project may."`
		Profile     protocol.Profile     `json:"profile,omitempty" enum:"auto,balanced,deep_reasoning,coding" doc:"Default: the profile of the conversation when the follow-up starts, else the default profile of the account, else auto."`
	}
}

func (h *Handlers) createFollowUp(ctx context.Context, in *createFollowUpInput) (*resource.Created[protocol.FollowUp], error) {
	attachments, err := onceEach("body.attachments", in.Body.Attachments)
	if err != nil {
		return nil, err
	}
	if err := protocol.CheckFollowUp(in.Body.Content, len(attachments)); err != nil {
		return nil, err
	}
	if err := tools.Check(h.Tools, "body.tools", in.Body.Tools); err != nil {
		return nil, err
	}
	item, err := h.Turns.CreateFollowUp(ctx, &turnlog.NewFollowUp{
		Queue: h.queue(ctx, in.ConversationID), Content: in.Body.Content, Attachments: attachments, Profile: in.Body.Profile, Tools: in.Body.Tools,
	})
	if err = failpoint.Respond(failpoint.FollowUpAfterCommit, err); err != nil {
		return nil, err
	}
	return resource.NewCreated(protocol.FollowUpsPath(in.ConversationID), item), nil
}

type orderFollowUpsInput struct {
	resource.InConversation
	Body struct {
		Order        []protocol.FollowUpID `json:"order" maxItems:"500"`
		QueueVersion *int64                `json:"queue_version,omitempty" doc:"The version of the queue that the order is based on. Required."`
	}
}

func (h *Handlers) orderFollowUps(ctx context.Context, in *orderFollowUpsInput) (*resource.Body[protocol.FollowUpOrder], error) {
	seen := make(map[protocol.FollowUpID]bool, len(in.Body.Order))
	for _, id := range in.Body.Order {
		if seen[id] {
			return nil, protocol.Invalid("body.order", "must not name a follow-up twice")
		}
		seen[id] = true
	}
	queue, err := h.FollowUps.OrderFollowUps(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Order, in.Body.QueueVersion)
	if err = failpoint.Respond(failpoint.FollowUpAfterCommit, err); err != nil {
		return nil, err
	}
	return resource.OK(*queue), nil
}

type changeFollowUpInput struct {
	resource.InConversation
	resource.IfMatch
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
	Body       struct {
		State       protocol.FollowUpState `json:"state" enum:"queued,held,cancelled"`
		Content     *string                `json:"content,omitempty" doc:"The new text. Absent: unchanged. May be empty if the message has files."`
		Attachments *[]protocol.FileID     `json:"attachments,omitempty" maxItems:"50" doc:"The new files, at most 20 different ones; none: an empty list. Absent: unchanged. Files that the follow-up has already may have been deleted since."`
		Version     *int64                 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. One of them is required."`
	}
}

func (h *Handlers) changeFollowUp(ctx context.Context, in *changeFollowUpInput) (*resource.Versioned[protocol.FollowUp], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	if text := in.Body.Content; text != nil && *text != "" { // whether it may be empty depends on the stored files
		if err := protocol.CheckFollowUp(*text, 0); err != nil {
			return nil, err
		}
	}
	attachments := in.Body.Attachments
	if attachments != nil {
		distinct, err := onceEach("body.attachments", *attachments)
		if err != nil {
			return nil, err
		}
		attachments = &distinct
	}
	if in.Body.State == protocol.FollowUpQueued { // it may start a turn
		if err := h.Limits.Draw(ctx, route.BucketChat, exchange.CallerOf(ctx).AccountID.String()); err != nil {
			return nil, err
		}
	}
	item, err := h.Turns.ChangeFollowUp(ctx, &turnlog.FollowUpChange{
		Queue: h.queue(ctx, in.ConversationID), FollowUpID: in.FollowUpID,
		FollowUpChange: protocol.FollowUpChange{State: in.Body.State, Content: in.Body.Content, Attachments: attachments, Version: version},
	})
	return resource.WithETag(item, err)
}

type promoteFollowUpInput struct {
	resource.InConversation
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
	Body       struct {
		Mode string `json:"mode,omitempty" enum:"next,interrupt" default:"next" doc:"next: the follow-up starts when the live turn completes. interrupt: the live turn is cancelled, and the follow-up starts when it has ended."`
	}
}

func (h *Handlers) promoteFollowUp(ctx context.Context, in *promoteFollowUpInput) (*resource.Versioned[protocol.FollowUp], error) {
	item, err := h.Turns.PromoteFollowUp(ctx, &turnlog.FollowUpPromotion{
		Queue: h.queue(ctx, in.ConversationID), FollowUpID: in.FollowUpID, Interrupt: in.Body.Mode == "interrupt",
	})
	return resource.WithETag(item, failpoint.Respond(failpoint.FollowUpAfterCommit, err))
}

func (h *Handlers) queue(ctx context.Context, conversation protocol.ConversationID) turnlog.Queue {
	return turnlog.Queue{AccountID: exchange.CallerOf(ctx).AccountID, ConversationID: conversation, At: h.Now()}
}
