package chat

import (
	stdhttp "net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of turns and of follow-ups.
func (h *Handlers) Routes() []route.Route { return append(h.turnRoutes(), h.followUpRoutes()...) }

func (h *Handlers) turnRoutes() []route.Route {
	const untilFinished = "The events of the turn. The stream ends after `turn.finished`. If the client disconnects, the turn continues."
	return []route.Route{
		route.Stream("POST", "/chat", "startTurn", "Send a message and stream the answer", route.Policy{Conflicts: true}, h.postChat).WithMaxBody(route.MaxBody).
			DescribedAs("Starts a turn that answers the message, and streams the events of the turn. The message and the turn are committed before the first byte of the response. If the client disconnects, the turn continues; resume the stream with GET /chat/turns/{turn_id}/events. A repeated request with the same Idempotency-Key returns the same turn, follow-up or receipt. A message can have up to 20 files; if the account has not all of them, the response is 409 `conflict` with their states in `current`, and nothing starts. The model gets the texts of the files, or of long ones the passages that have words of the message, and cites them in `citations`. A turn waits up to a minute for a text that was not read yet.").
			WithExample(route.Object{"conversation_id": "conv_01h2xcejqtf2nbrexx3vqjhp41", "input": []any{route.Object{"type": "text", "text": "What is 6*7?"}}, "profile": "balanced", "if_busy": "queue"}).
			WithCodes(protocol.CodeTurnInProgress, protocol.CodeHeadMoved, protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyLiveTurns, protocol.CodeTooManyStreams, protocol.CodeTooManyFollowUps, protocol.CodeTooManyInputs, protocol.CodeConflict).
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
			DescribedAs("Streams the events of a live or finished turn that follow the sequence in Last-Event-ID or `after`; the header takes precedence. Any node serves the stream, and an event has the same bytes every time. With `mode=snapshot`, the stream starts with the message so far. A position at or past the end of a finished turn gets 204 in both modes. Resuming a live turn is not rate limited; the events of a finished turn have a limit of their own.").
			WithCodes(protocol.CodeSequenceAhead, protocol.CodeTooManyStreams).
			Documented(func(api huma.API, op *huma.Operation) {
				route.DocumentEventStream(stdhttp.StatusOK, untilFinished)(api, op)
				op.Responses["204"] = &huma.Response{Description: "The turn has ended, and the client has received all of its events."}
			}),
		route.Stream("POST", "/chat/steering", "steerTurn", "Steer or cancel a live turn", route.Policy{Conflicts: true, Cancels: true}, h.postSteering).WithMaxBody(route.MediumBody).
			DescribedAs("Sends a command to a live turn: add an input, apply a pending input at once, withdraw it, decide on an approval, or cancel the turn. The command is committed before the 202 response. Every accepted input is eventually applied or returned, exactly once. A repeated input with the same `client_steering_id` returns the receipt of the first one, and so does a repeated decision. Another decision on an approval that was decided, has expired or was cancelled with its turn gets 409 `approval_decided`, and a decision that names another input than the approval shows gets 409 `approval_changed`; `current` has the approval.").
			WithExample(route.Object{"type": "input", "turn_id": "turn_01h2xcejqtf2nbrexx3vqjhp41", "client_steering_id": "c-1", "input": []any{route.Object{"type": "text", "text": "Shorter, please."}}, "delivery": "next_step"}).
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
