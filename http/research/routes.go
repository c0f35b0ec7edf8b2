package research

import (
	_ "embed" // the descriptions of operations
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/protocol"
)

//go:embed create.md
var createDescription string

//go:embed steer.md
var steerDescription string

// Routes returns the routes of research tasks.
func (h *Handlers) Routes() route.Table {
	const below, path = "/conversations/{conversation_id}/research-tasks", "/research-tasks/{task_id}"
	// A task is work of models, as a turn is, so it shares the limit of starts and inputs.
	steers := route.Policy{Bucket: route.BucketChat, Conflicts: true}
	creates := steers
	creates.Idempotent = true
	return route.Table{
		Tags:   []route.Tag{{Name: "research-tasks", Description: "Work that finds and reads sources, and writes a report with citations."}},
		Params: []route.Param{route.Identifier("task_id", h.Store.OwnsTask)},
		Routes: []route.Route{
			route.Call("POST", below, "createResearchTask", "Start a research task", creates, h.create).WithMaxBody(route.MaxBody).
				DescribedAs(createDescription).
				WithExample(route.Object{"question": "Why are the tides at Saint-Malo so high?", "depth": "quick", "sources": []any{"web"}}).
				WithCodes(protocol.CodeConflict, protocol.CodeTooManyTasks, protocol.CodeBudgetReached, protocol.CodeSourceUnavailable).WithStatus(stdhttp.StatusAccepted),
			route.Call("GET", below, "listResearchTasks", "List research tasks", route.Lists.Unstored(), h.list).
				DescribedAs("Lists the research tasks of a conversation, the newest first."),
			route.Call("GET", "/research-tasks", "listAccountResearchTasks", "List the research tasks of the account", route.Lists.Unstored(), h.listAll).
				DescribedAs("Lists the research tasks of all conversations, the newest first. A client that has just signed in learns from it which ones run; changes are in the feed."),
			route.Call("GET", path, "getResearchTask", "Get a research task", route.Reads.Unstored(), h.get).
				DescribedAs("Returns the state, the plan and the progress of a research task."),
			route.Call("GET", path+"/sources", "listResearchSources", "List the sources of a research task", route.Lists.Unstored(), h.sources).
				DescribedAs("Lists the sources of which the task keeps excerpts, with the numbers by which the report cites them. " +
					"Sources are kept while the task runs; their numbers exist once it is completed."),
			route.Call("POST", path+"/cancel", "cancelResearchTask", "Cancel a research task", route.Writes.Unstored(), h.cancel).
				DescribedAs("Ends a task that has not ended. The cancel is stored when the response is sent; the state is `cancelling` until the steps " +
					"that run have stopped. A repeat gets the task again; a task that has ended gets 409 with the task in `current`.").
				WithCodes(protocol.CodeConflict).WithStatus(stdhttp.StatusAccepted),
			route.Call("POST", path+"/steering", "steerResearchTask", "Steer a research task", steers, h.steer).WithMaxBody(route.MaxBody).
				DescribedAs(steerDescription).
				WithExample(route.Object{"type": "input", "client_steering_id": "input-1", "input": "Only spring tides."}).
				WithCodes(protocol.CodeSteeringClosed, protocol.CodeConflict, protocol.CodeTooManyInputs).WithStatus(stdhttp.StatusAccepted),
			route.Stream("GET", path+"/events", "followResearchTask", "Stream the events of a research task", route.Policy{Conflicts: true}, h.getEvents).
				DescribedAs("Streams the events of a task that follow the sequence in Last-Event-ID or `after`; the header takes precedence. "+
					"Any node serves the stream, and an event has the same bytes every time. The stream ends after `task.finished`.").
				WithCodes(protocol.CodeSequenceAhead, protocol.CodeTooManyStreams).
				Documented(documentEvents),
		},
	}
}

func documentEvents(_ huma.API, op *huma.Operation) {
	op.Responses["200"] = &huma.Response{
		Description: "The events of the task, until its end. Each one is a server-sent event with its sequence in `id`.",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Ref: "#/components/schemas/ResearchEvent"}}},
	}
	op.Responses["204"] = &huma.Response{Description: "The task has ended, and the client has received all of its events."}
}
