package chat

import (
	_ "embed" // the descriptions of operations
	stdhttp "net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/protocol"
)

//go:embed start_turn.md
var startDescription string

//go:embed create_follow_up.md
var createFollowUpDescription string

//go:embed change_follow_up.md
var changeFollowUpDescription string

//go:embed promote_follow_up.md
var promoteFollowUpDescription string

// Routes returns the routes of turns and of follow-ups.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "chat", Description: "Live turns: start, follow, steer and cancel them."}},
		Params: []route.Param{
			route.Identifier[protocol.TurnID]("turn_id", nil),
			route.Identifier("follow_up_id", h.Messages.OwnsFollowUp),
		},
		Routes: append(h.turnRoutes(), h.followUpRoutes()...),
	}
}

func (h *Handlers) turnRoutes() []route.Route {
	const untilFinished = "The events of the turn. The stream ends after `turn.finished`. If the client disconnects, the turn continues."
	return []route.Route{
		route.Stream("POST", "/chat", "startTurn", "Send a message and stream the answer", route.Policy{Conflicts: true}, h.postChat).WithMaxBody(route.MaxBody).
			DescribedAs(startDescription).
			WithExample(route.Object{
				"conversation_id": "conv_01h2xcejqtf2nbrexx3vqjhp41", "input": []any{route.Object{"type": "text", "text": "What is 6*7?"}},
				"profile": "balanced", "if_busy": "queue",
			}).
			WithCodes(protocol.CodeTurnInProgress, protocol.CodeHeadMoved, protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyLiveTurns,
				protocol.CodeTooManyStreams, protocol.CodeTooManyFollowUps, protocol.CodeTooManyInputs, protocol.CodeConflict).
			Documented(func(api huma.API, op *huma.Operation) {
				route.DocumentEventStream(stdhttp.StatusOK, untilFinished)(api, op)
				op.Responses["202"] = &huma.Response{
					Description: "A turn is live. The response is the queued follow-up or the receipt of the steering input, depending on `if_busy`.",
					Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
						schemaOf[protocol.FollowUp](api), schemaOf[protocol.SteeringReceipt](api),
					}}}},
				}
			}),
		route.Call("GET", "/chat/turns/{turn_id}", "getTurn", "Get a turn", route.Reads, h.getTurn).
			DescribedAs("Returns a live or finished turn: its state, its last sequence, the identifier of the message that it writes and, once it has ended, its usage."),
		route.Stream("GET", "/chat/turns/{turn_id}/events", "followTurn", "Stream the events of a turn", route.Policy{Conflicts: true}, h.getTurnEvents).
			DescribedAs("Streams the events of a live or finished turn that follow the sequence in Last-Event-ID or `after`; the header takes "+
				"precedence. Any node serves the stream, and an event has the same bytes every time. "+
				"With `mode=snapshot`, the stream starts with the message so far. A position at or past the end of a finished turn gets 204 in both "+
				"modes. Resuming a live turn is not rate limited; the events of a finished turn have a limit of their own.").
			WithCodes(protocol.CodeSequenceAhead, protocol.CodeTooManyStreams).
			Documented(func(api huma.API, op *huma.Operation) {
				route.DocumentEventStream(stdhttp.StatusOK, untilFinished)(api, op)
				op.Responses["204"] = &huma.Response{Description: "The turn has ended, and the client has received all of its events."}
			}),
		route.Stream("POST", "/chat/steering", "steerTurn", "Steer or cancel a live turn", route.Policy{Conflicts: true, Cancels: true}, h.postSteering).WithMaxBody(route.MediumBody).
			DescribedAs("Sends a command to a live turn: add an input, apply a pending input at once, withdraw it, decide on an approval, or cancel "+
				"the turn. The command is committed before the 202 response. Every accepted input is eventually applied or returned, exactly once. "+
				"A repeated input with the same `client_steering_id` returns the receipt of the first one, and so does a repeated decision. "+
				"Another decision on an approval that was decided, has expired or was cancelled with its turn gets 409 `approval_decided`, and a "+
				"decision that names another input than the approval shows gets 409 `approval_changed`; `current` has the approval.").
			WithExample(route.Object{
				"type": "input", "turn_id": "turn_01h2xcejqtf2nbrexx3vqjhp41", "client_steering_id": "c-1",
				"input": []any{route.Object{"type": "text", "text": "Shorter, please."}}, "delivery": "next_step",
			}).
			WithCodes(protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyInputs, protocol.CodeApprovalDecided, protocol.CodeApprovalChanged).
			Documented(func(api huma.API, op *huma.Operation) {
				route.JSONResponse[protocol.SteeringReceipt](api, op, stdhttp.StatusAccepted, "The command is committed. An input will be applied or returned, exactly once.")
			}),
		route.Call("GET", "/conversations/{conversation_id}/turns", "listTurns", "List turns", route.Lists, h.listTurns).
			DescribedAs("Lists the turns of a conversation on all of its branches, newest first. At most one of them is live."),
	}
}

func schemaOf[T any](api huma.API) *huma.Schema {
	return api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

func (h *Handlers) followUpRoutes() []route.Route {
	const queue = "/conversations/{conversation_id}/follow-ups"
	return []route.Route{
		route.Call("GET", queue, "listFollowUps",
			"List follow-ups", route.Lists, h.listFollowUps).
			DescribedAs("Lists the follow-ups of a conversation in the order of the queue: those that are queued, held, started or cancelled or, with " +
				"`state=open`, only those that are queued or held."),
		route.Call("POST", queue, "createFollowUp",
			"Create a follow-up", route.Policy{Bucket: route.BucketChat, Conflicts: true, Idempotent: true}, h.createFollowUp).WithMaxBody(route.MaxBody).
			DescribedAs(createFollowUpDescription).
			WithExample(route.Object{"content": "And in Celsius?", "profile": "balanced"}).
			WithCodes(protocol.CodeConflict, protocol.CodeTooManyFollowUps, protocol.CodeBudgetReached).
			WithStatus(stdhttp.StatusCreated),
		route.Call("GET", queue+"/{follow_up_id}", "getFollowUp", "Get a follow-up", route.Reads, h.getFollowUp).
			DescribedAs("Returns one follow-up of a conversation, whatever its state."),
		route.Call("PUT", queue+"/order", "orderFollowUps",
			"Reorder follow-ups", route.Writes, h.orderFollowUps).
			DescribedAs("Puts the follow-ups that are queued or held into a new order. "+
				"`order` names each of them once, `queue_version` is the version of the queue that the order is based on. "+
				"If the queue has changed since, for example by another device or because a follow-up has started, the request fails with 409 "+
				"`stale_version`, and `current` has the present order. The versions of the follow-ups do not change.").
			WithExample(route.Object{"order": []string{"fu_01h2xcejqtf2nbrexx3vqjhp42", "fu_01h2xcejqtf2nbrexx3vqjhp41"}, "queue_version": 7}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
		route.Call("PATCH", queue+"/{follow_up_id}", "changeFollowUp",
			"Change a follow-up", route.Writes, h.changeFollowUp).WithMaxBody(route.MaxBody).
			DescribedAs(changeFollowUpDescription).
			WithExample(route.Object{"state": "held", "version": 1}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict, protocol.CodeBudgetReached),
		route.Call("POST", queue+"/{follow_up_id}/promote", "promoteFollowUp",
			"Promote a follow-up", route.Policy{Bucket: route.BucketChat, Conflicts: true}, h.promoteFollowUp).
			DescribedAs(promoteFollowUpDescription).
			WithExample(route.Object{"mode": "interrupt"}).
			WithCodes(protocol.CodeConflict, protocol.CodeBudgetReached),
	}
}
