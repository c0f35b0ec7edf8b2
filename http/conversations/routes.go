package conversations

import (
	stdhttp "net/http"
	"slices"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of conversations and of what they contain.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "conversations", Description: "Conversations with their messages, branches, drafts, follow-ups and usage."}},
		Params: []route.Param{
			route.Identifier("conversation_id", h.Store.OwnsConversation),
			route.Identifier("branch_id", h.Branches.OwnsBranch),
			route.Identifier[protocol.MessageID]("message_id", nil),
		},
		Routes: slices.Concat(h.placementRoutes(), h.conversationRoutes(), h.messageRoutes(), h.findRoutes(), h.draftRoutes(), h.branchRoutes()),
	}
}

// placementRoutes are the routes that change where the lists show a conversation, and in which project it is.
func (h *Handlers) placementRoutes() []route.Route {
	const path = "/conversations/{conversation_id}"
	return []route.Route{
		route.Call("PUT", path+"/archive", "setArchived", "Archive a conversation", route.Writes, h.setArchived).
			DescribedAs("Moves a conversation into the archive, or back. A list shows archived conversations only if `archived` includes them; nothing "+
				"else changes. A change requires the current version of the conversation in If-Match or in `version`. "+
				"A repetition of the stored value changes nothing.").
			WithExample(route.Object{"archived": true, "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
		route.Call("PUT", path+"/pin", "setPinned", "Pin a conversation", route.Writes, h.setPinned).
			DescribedAs("Pins a conversation, so that lists show it before all others, or removes the pin. "+
				"A change requires the current version of the conversation in If-Match or in `version`. "+
				"A repetition of the stored value changes nothing.").
			WithExample(route.Object{"pinned": true, "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
		route.Call("PUT", path+"/project", "moveConversation", "Move a conversation into or out of a project", route.Writes, h.move).
			DescribedAs("Moves a conversation into an active project or, with null, out of its project. "+
				"A change requires the current version of the conversation in If-Match or in `version`. "+
				"A repetition of the stored value changes nothing. A live turn continues with the instructions of the project in which it started.").
			WithExample(route.Object{"project_id": "proj_01h2xcejqtf2nbrexx3vqjhp41", "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
		route.Call("GET", path+"/move-targets", "listMoveTargets", "List the projects that can take a conversation", route.Lists, h.listMoveTargets).
			DescribedAs("Lists the active projects into which the conversation can be moved, the newest first. A temporary conversation has none."),
	}
}

func (h *Handlers) conversationRoutes() []route.Route {
	const path = "/conversations/{conversation_id}"
	return []route.Route{
		route.Call("GET", "/conversations", "listConversations", "List conversations", route.Lists, h.listConversations).
			DescribedAs("Lists pinned conversations first, then the others, each by last activity, newest first. " +
				"Archived conversations are listed only if `archived` includes them. Temporary conversations are never listed. " +
				"A list that is narrowed by `metadata` or by times has the same order; a page of it can have fewer items than `limit`, or none, while " +
				"`has_more` is true."),
		route.Call("POST", "/conversations", "createConversation", "Create a conversation", route.Creates, h.createConversation).
			DescribedAs("Creates a conversation without messages. Without a title, the service generates one after the first turn.").
			WithExample(route.Object{"title": "Six times seven", "profile": "balanced"}).WithStatus(stdhttp.StatusCreated).
			WithCodes(protocol.CodeConflict),
		route.Call("GET", path, "getConversation", "Get a conversation", route.Reads, h.getConversation).
			DescribedAs("Returns the conversation with its draft, its follow-ups and its live turn: all that a client needs to render its page, in one request."),
		route.Call("PUT", path, "putConversation", "Create or replace a conversation", route.Writes, h.putConversation).WithMaxBody(route.MediumBody).
			DescribedAs("Creates a conversation with an identifier that the client has chosen (201), or "+
				"replaces the writable fields of an existing conversation (200). "+
				"A change of an existing conversation requires its current version in If-Match or in `version`. "+
				"The identifier of a deleted conversation cannot be used again: it returns 404.").
			WithExample(route.Object{"title": "Six times seven", "profile": "balanced", "metadata": route.Object{"colour": "blue"}, "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict).
			Documented(mayCreate),
		route.Call("PUT", path+"/title", "setTitle", "Set the title of a conversation", route.Writes, h.setTitle).
			DescribedAs("Pass the version that the change is based on in If-Match or in `version`; if the conversation has changed since that version, " +
				"the request fails with 409 `stale_version`. Without a version, the last write wins. " +
				"A title set by the user is never replaced by a generated one.").
			WithExample(route.Object{"title": "Six times seven"}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("PUT", path+"/read", "markRead", "Mark a conversation as read", route.Writes, h.markRead).
			DescribedAs("Stores the newest message that the account has read on any device; `unread` is derived from it. The mark never moves back to an earlier message.").
			WithExample(route.Object{"message_id": "msg_01h2xcejqtf2nbrexx3vqjhp41"}),
		route.Call("DELETE", path, "deleteConversation", "Delete a conversation", route.Writes, h.deleteConversation).
			DescribedAs("Deletes a conversation permanently. Once the response is sent, the deletion is durable and no request returns the "+
				"conversation any more; a background job erases its contents. While a turn is live, the first request fails with 409 "+
				"`confirmation_required`. Repeat it with the token of that response in X-Confirm: the turn is then cancelled and the conversation is "+
				"deleted.").
			WithCodes(protocol.CodeStaleVersion, protocol.CodeConfirmation),
	}
}

func (h *Handlers) messageRoutes() []route.Route {
	return []route.Route{
		route.Call("GET", "/conversations/{conversation_id}/messages", "listMessages",
			"List messages", route.Lists, h.listMessages).
			DescribedAs("Lists the messages of a branch in pages; within a page, the oldest message is first. " +
				"Without parameters, returns the newest messages of the active branch. " +
				"A message that is streaming has `covers_sequence`: continue with GET /chat/turns/{turn_id}/events?after={covers_sequence}."),
		route.Call("GET", "/conversations/{conversation_id}/messages/{message_id}", "getMessage", "Get a message", route.Lists, h.getMessage).
			DescribedAs("Returns one message of a conversation, on any of its branches. Its path is that of `branch_id`."),
	}
}

func (h *Handlers) findRoutes() []route.Route {
	return []route.Route{
		route.Call("GET", "/conversations/{conversation_id}/find", "findInConversation",
			"Find a text in a conversation", route.Lists.Unstored(), h.findText).
			DescribedAs("Returns the messages of a branch in which a text may occur, oldest first, with the text and the code that clients search for it. " +
				"It is for the find bar of a client, which marks and counts the matches in the text as it displays it: a message is returned if it has each run of letters and digits of q, " +
				"also within words, in any order, without regard to case, accents and the marks of Markdown. A text without letters and digits is found by its signs. " +
				"A page may have no messages and still a next_cursor, with which the search continues. A message that is streaming is not found."),
	}
}

func (h *Handlers) draftRoutes() []route.Route {
	const path = "/conversations/{conversation_id}/draft"
	return []route.Route{
		route.Call("GET", path, "getDraft", "Get a draft", route.Reads, h.getDraft).
			DescribedAs("Returns the draft of a conversation. A conversation without one has an empty draft."),
		route.Call("PUT", path, "putDraft",
			"Save a draft", route.Writes, h.putDraft).WithMaxBody(route.MaxBody).
			DescribedAs("Stores a message that was typed but not sent, for all devices of the account. An empty draft clears it. "+
				"Pass the version that the change is based on in If-Match or in `version`; if the draft has changed since that version, the request "+
				"fails with 409 `stale_version` and the stored draft. Without a version, the last write wins. "+
				"If the account has not all of the files that the draft gets, the response is 409 `conflict` with their states in `current`.").
			WithExample(route.Object{"content": "And seven times eight?", "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeConflict),
	}
}

func (h *Handlers) branchRoutes() []route.Route {
	const path = "/conversations/{conversation_id}"
	return []route.Route{
		route.Call("POST", path+"/branches", "createBranch",
			"Create a branch or fork a conversation", route.Copies, h.createBranch).
			DescribedAs("`edit` and `regenerate` create a new active branch for another version of a message; the next POST /chat adds its content. "+
				"`fork` creates a new conversation with a copy of the messages up to and including the given one. Other branches are never deleted.").
			WithExample(route.Object{"message_id": "msg_01h2xcejqtf2nbrexx3vqjhp41", "mode": "edit"}).
			WithCodes(protocol.CodeTurnInProgress, protocol.CodeConflict).
			WithStatus(stdhttp.StatusCreated).Documented(documentBranchOrFork),
		route.Call("GET", path+"/branches", "listBranches", "List branches", route.Lists, h.listBranches).
			DescribedAs("Lists the branches of a conversation, oldest first. They form a tree: `parent_branch_id` and `base_message_id` name the place at which a branch starts."),
		route.Call("GET", path+"/branches/{branch_id}", "getBranch", "Get a branch", route.Reads, h.getBranch).
			DescribedAs("Returns one branch of a conversation."),
		route.Call("PATCH", path+"/branches/{branch_id}", "renameBranch", "Rename a branch", route.Writes, h.renameBranch).
			DescribedAs("Sets the name of a branch; an empty name removes it. Pass the version that the change is based on in If-Match or in " +
				"`version`; if the branch was renamed since that version, the request fails with 409 `stale_version` and the current branch. " +
				"Without a version, the last write wins.").
			WithExample(route.Object{"name": "In Celsius", "version": 1}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("PUT", path+"/active-branch", "setActiveBranch", "Set the active branch", route.Writes, h.setActiveBranch).
			DescribedAs("Switches the conversation to one of its branches. Requires the current version of the conversation in If-Match or in "+
				"`version`. While a turn is live, the request fails with 409 `turn_in_progress`.").
			WithExample(route.Object{"branch_id": "br_01h2xcejqtf2nbrexx3vqjhp41", "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeTurnInProgress),
	}
}
