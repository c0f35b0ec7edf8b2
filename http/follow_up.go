package http

import (
	"context"
	stdhttp "net/http"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// followUpHandlers handle the requests for the queues of conversations.
type followUpHandlers struct {
	store  FollowUps
	turns  Turns
	limits *router.Limits
	keys   *auth.Keys
	now    func() time.Time
}

func (h *followUpHandlers) routes() []route.Route {
	const queue = "/conversations/{conversation_id}/follow-ups"
	return []route.Route{
		route.Call("GET", queue, "listFollowUps",
			"List follow-ups", route.Lists, h.listFollowUps).
			DescribedAs("Lists the follow-ups of a conversation in the order of the queue: those that are queued, held, started or cancelled or, with `state=open`, only those that are queued or held."),
		route.Call("POST", queue, "createFollowUp",
			"Create a follow-up", route.Policy{Bucket: route.BucketChat, Conflicts: true, Idempotent: true}, h.createFollowUp).WithMaxBody(route.MaxBody).
			DescribedAs("Adds a message to the end of the queue of a conversation. When the live turn completes, the first queued follow-up becomes the next turn, one turn per follow-up, whether or not a client is connected. If no turn is live, it starts immediately: the response then has the state `started` and its `turn_id`. It stays `queued` while the account has as many live turns as it may have. An archived project is read-only: 409 `conflict` with the project in `current`. If the account has not all of the files, the response is 409 `conflict` with their states.").
			WithExample(route.Object{"content": "And in Celsius?", "profile": "balanced"}).
			WithCodes(protocol.CodeConflict, protocol.CodeTooManyFollowUps, protocol.CodeBudgetReached).
			WithStatus(stdhttp.StatusCreated),
		route.Call("GET", queue+"/{follow_up_id}", "getFollowUp", "Get a follow-up", route.Reads, h.getFollowUp).
			DescribedAs("Returns one follow-up of a conversation, whatever its state."),
		route.Call("PUT", queue+"/order", "orderFollowUps",
			"Reorder follow-ups", route.Writes, h.orderFollowUps).
			DescribedAs("Puts the follow-ups that are queued or held into a new order. `order` names each of them once, `queue_version` is the version of the queue that the order is based on. If the queue has changed since, for example by another device or because a follow-up has started, the request fails with 409 `stale_version`, and `current` has the present order. The versions of the follow-ups do not change.").
			WithExample(route.Object{"order": []string{"fu_01h2xcejqtf2nbrexx3vqjhp42", "fu_01h2xcejqtf2nbrexx3vqjhp41"}, "queue_version": 7}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
		route.Call("PATCH", queue+"/{follow_up_id}", "changeFollowUp",
			"Change a follow-up", route.Writes, h.changeFollowUp).WithMaxBody(route.MaxBody).
			DescribedAs("Edits the text or the files of a follow-up that is queued or held, or holds, releases or cancels it. Requires its current version in If-Match or in `version`. If the account has not all of the new files, the response is 409 `conflict` with their states. A follow-up that was started or cancelled cannot be changed. If a follow-up is released while no turn is live, the next turn of the queue starts immediately. An archived project is read-only: there a release gets 409 `conflict` with the project in `current`.").
			WithExample(route.Object{"state": "held", "version": 1}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict, protocol.CodeBudgetReached),
		route.Call("POST", queue+"/{follow_up_id}/promote", "promoteFollowUp",
			"Promote a follow-up", route.Policy{Bucket: route.BucketChat, Conflicts: true}, h.promoteFollowUp).
			DescribedAs("Moves a follow-up to the front of the queue, and releases it if it is held. If no turn is live, it starts immediately. Otherwise `next` lets it start when the live turn completes. `interrupt` also cancels the live turn, and the follow-up starts when that turn has ended; the other queued follow-ups are held then, as after every turn that did not complete. A repeated request has no second effect: a follow-up that has started is returned unchanged. An archived project is read-only: 409 `conflict` with the project in `current`.").
			WithExample(route.Object{"mode": "interrupt"}).
			WithCodes(protocol.CodeConflict, protocol.CodeBudgetReached),
	}
}

type listFollowUpsInput struct {
	resource.InConversation
	resource.PageInput
	State string `query:"state" enum:"open,any" default:"any" doc:"open: only follow-ups that are queued or held."`
}

func (h *followUpHandlers) listFollowUps(ctx context.Context, in *listFollowUpsInput) (*resource.Body[protocol.FollowUpList], error) {
	scope := "follow-ups " + in.State + " " + in.ConversationID.String()
	after, err := resource.OpenCursor[conversations.FollowUpPosition](router.CallerOf(ctx), h.keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	caller := router.CallerOf(ctx)
	page, err := h.store.ListFollowUps(ctx, caller.AccountID, in.ConversationID, in.State == "any", after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.OK(protocol.FollowUpList{List: resource.Listed(caller, h.keys, scope, page.Items, page.Next).Body, QueueVersion: page.QueueVersion}), nil
}

type followUpPath struct {
	resource.InConversation
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
}

func (h *followUpHandlers) getFollowUp(ctx context.Context, in *followUpPath) (*resource.Versioned[protocol.FollowUp], error) {
	return followUpOf(h.store.GetFollowUp(ctx, router.CallerOf(ctx).AccountID, in.ConversationID, in.FollowUpID))
}

type createFollowUpInput struct {
	resource.InConversation
	Body struct {
		Content     string            `json:"content" doc:"The message. May be empty if it has files."`
		Attachments []protocol.FileID `json:"attachments,omitempty" maxItems:"50" doc:"The files of the message, at most 20 different ones."`
		Profile     protocol.Profile  `json:"profile,omitempty" enum:"auto,balanced,deep_reasoning,coding" doc:"Default: the profile of the conversation when the follow-up starts, else the default profile of the account, else auto."`
	}
}

func (h *followUpHandlers) createFollowUp(ctx context.Context, in *createFollowUpInput) (*resource.Created[protocol.FollowUp], error) {
	attachments, err := onceEach("body.attachments", in.Body.Attachments)
	if err != nil {
		return nil, err
	}
	if in.Body.Content != "" || len(attachments) == 0 {
		if err := checkFollowUp(in.Body.Content); err != nil {
			return nil, err
		}
	}
	item, err := h.turns.CreateFollowUp(ctx, &turnlog.NewFollowUp{
		Queue: h.queue(ctx, in.ConversationID), Content: in.Body.Content, Attachments: attachments, Profile: in.Body.Profile,
	})
	if err = failpoint.Respond(failpoint.FollowUpAfterCommit, err); err != nil {
		return nil, err
	}
	return resource.NewCreated(resource.ConversationPath(in.ConversationID)+"/follow-ups", item), nil
}

type orderFollowUpsInput struct {
	resource.InConversation
	Body struct {
		Order        []protocol.FollowUpID `json:"order" maxItems:"500"`
		QueueVersion *int64                `json:"queue_version,omitempty" doc:"The version of the queue that the order is based on. Required."`
	}
}

func (h *followUpHandlers) orderFollowUps(ctx context.Context, in *orderFollowUpsInput) (*resource.Body[protocol.FollowUpOrder], error) {
	seen := make(map[protocol.FollowUpID]bool, len(in.Body.Order))
	for _, id := range in.Body.Order {
		if seen[id] {
			return nil, protocol.Invalid("body.order", "must not name a follow-up twice")
		}
		seen[id] = true
	}
	queue, err := h.store.OrderFollowUps(ctx, router.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Order, in.Body.QueueVersion)
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

func (h *followUpHandlers) changeFollowUp(ctx context.Context, in *changeFollowUpInput) (*resource.Versioned[protocol.FollowUp], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	if text := in.Body.Content; text != nil && *text != "" { // whether it may be empty depends on the stored files
		if err := checkFollowUp(*text); err != nil {
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
		if err := h.limits.DrawAlso(ctx, route.BucketChat); err != nil {
			return nil, err
		}
	}
	item, err := h.turns.ChangeFollowUp(ctx, &turnlog.FollowUpChange{
		Queue: h.queue(ctx, in.ConversationID), FollowUpID: in.FollowUpID, State: in.Body.State, Content: in.Body.Content, Attachments: attachments, Version: version,
	})
	return followUpOf(item, err)
}

type promoteFollowUpInput struct {
	resource.InConversation
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
	Body       struct {
		Mode string `json:"mode,omitempty" enum:"next,interrupt" default:"next" doc:"next: the follow-up starts when the live turn completes. interrupt: the live turn is cancelled, and the follow-up starts when it has ended."`
	}
}

func (h *followUpHandlers) promoteFollowUp(ctx context.Context, in *promoteFollowUpInput) (*resource.Versioned[protocol.FollowUp], error) {
	item, err := h.turns.PromoteFollowUp(ctx, &turnlog.FollowUpPromotion{
		Queue: h.queue(ctx, in.ConversationID), FollowUpID: in.FollowUpID, Interrupt: in.Body.Mode == "interrupt",
	})
	return followUpOf(item, failpoint.Respond(failpoint.FollowUpAfterCommit, err))
}

func (h *followUpHandlers) queue(ctx context.Context, conversation protocol.ConversationID) turnlog.Queue {
	return turnlog.Queue{AccountID: router.CallerOf(ctx).AccountID, ConversationID: conversation, At: h.now()}
}

// checkFollowUp checks the text of a follow-up.
func checkFollowUp(content string) error {
	switch {
	case strings.TrimSpace(content) == "":
		return protocol.Invalid("body.content", "must contain text")
	case utf8.RuneCountInString(content) > protocol.MaxInputRunes:
		return protocol.Invalid("body.content", "is too long")
	}
	return nil
}

func followUpOf(item *protocol.FollowUp, err error) (*resource.Versioned[protocol.FollowUp], error) {
	if err != nil {
		return nil, err
	}
	return resource.WithETag(*item, item.Version), nil
}
