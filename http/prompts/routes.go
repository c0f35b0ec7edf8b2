package prompts

import (
	_ "embed" // the descriptions of operations
	stdhttp "net/http"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of prompts.
func (h *Handlers) Routes() route.Table {
	const path = "/prompts/{prompt_id}"
	return route.Table{
		Tags:   []route.Tag{{Name: "prompts", Description: "Texts that the user has saved for messages."}},
		Params: []route.Param{route.Identifier("prompt_id", h.Store.OwnsPrompt)},
		Routes: []route.Route{
			route.Call("GET", "/prompts", "listPrompts", "List prompts", route.Lists, h.list).
				DescribedAs("Lists the prompts of the account and of its projects, in the order of their names. " +
					"With `q`, those whose names begin with it come first. The prompts of deleted projects are left out."),
			route.Call("POST", "/prompts", "createPrompt", "Create a prompt", route.Creates, h.create).WithMaxBody(route.MediumBody).
				DescribedAs(createDescription).
				WithExample(route.Object{"name": "translate", "description": "Into any language", "text": "Translate this into {{language:French}}:\n\n{{text}}"}).
				WithCodes(protocol.CodeNameTaken, protocol.CodeTooManyPrompts, protocol.CodeConflict).WithStatus(stdhttp.StatusCreated),
			route.Call("GET", path, "getPrompt", "Get a prompt", route.Reads, h.get).
				DescribedAs("Returns a prompt."),
			route.Call("PATCH", path, "changePrompt", "Change a prompt", route.Writes, h.change).WithMaxBody(route.MediumBody).
				DescribedAs("Changes the name, the description or the text of a prompt; what is absent stays. A prompt stays in its project. "+
					"Requires the current version of the prompt in If-Match or in `version`. "+
					"The prompts of an archived project do not change (409 `conflict`).").
				WithExample(route.Object{"description": "Into a language that is asked for", "version": 1}).
				WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeNameTaken, protocol.CodeConflict),
			route.Call("DELETE", path, "deletePrompt", "Delete a prompt", route.Writes, h.delete).
				DescribedAs("Deletes a prompt for good. Messages that were written with it stay as they are.").
				WithCodes(protocol.CodeStaleVersion, protocol.CodeConflict),
		},
	}
}
