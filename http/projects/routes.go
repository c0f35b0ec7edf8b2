package projects

import (
	stdhttp "net/http"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of projects.
func (h *Handlers) Routes() route.Table {
	const path = "/projects/{project_id}"
	return route.Table{
		Tags:   []route.Tag{{Name: "projects", Description: "Projects: groups of conversations with common settings and instructions."}},
		Params: []route.Param{route.Identifier("project_id", h.Conversations.OwnsProject)},
		Routes: append(h.textRoutes(path), h.projectRoutes(path)...),
	}
}

func (h *Handlers) projectRoutes(path string) []route.Route {
	const version = " Requires the current version of the project in If-Match or in `version`."
	return []route.Route{
		route.Call("GET", "/projects", "listProjects", "List projects", route.Lists, h.list).
			DescribedAs("Lists the projects of the account in a state, the newest first."),
		route.Call("POST", "/projects", "createProject", "Create a project", route.Creates, h.create).
			DescribedAs("Creates an active project without conversations.").
			WithExample(route.Object{"name": "Kitchen"}).WithStatus(stdhttp.StatusCreated),
		route.Call("GET", path, "getProject", "Get a project", route.Reads, h.get).
			DescribedAs("Returns a project in any state."),
		route.Call("PUT", path+"/name", "renameProject", "Rename a project", route.Writes, h.rename).
			DescribedAs("Changes the name of an active project."+version).
			WithExample(route.Object{"name": "Kitchen and bath", "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
		route.Call("PUT", path+"/archive", "archiveProject", "Archive a project", route.Writes, h.archive).
			DescribedAs("Archives a project, or makes it active again. An archived project is read-only: it takes no conversations and no turns, and "+
				"its name, settings, instructions and prompts do not change. Its conversations can be read, and moved out of it. "+
				"Their queued follow-ups are held, and stay held when the project is active again. "+
				"Uploads into the project that have not ended end as `cancelled`."+version).
			WithExample(route.Object{"archived": true, "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
		route.Call("DELETE", path, "deleteProject", "Delete a project", route.Writes, h.delete).
			DescribedAs("Deletes a project: it hides its conversations and prompts from every read, until the project is restored, or erased 30 days "+
				"later (`purge_at`). Its files stay in the library. The first request fails with 409 `confirmation_required`, with the numbers of "+
				"conversations, files, prompts, instructions (0 or 1) and live turns; repeat it with the token of that response in X-Confirm. "+
				"Live turns of the project are then cancelled, and queued follow-ups are held."+version).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConfirmation, protocol.CodeConflict),
		route.Call("POST", path+"/restore", "restoreProject", "Restore a deleted project", route.Writes, h.restore).
			DescribedAs("Makes a deleted project visible again, with everything in it. "+
				"In a project with very many conversations, the account-wide list shows the most recently used ones at once and the others after some "+
				"seconds. A project that is not deleted, or whose `purge_at` has passed, cannot be restored."+version).
			WithExample(route.Object{"version": 4}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
		route.Call("GET", path+"/work-history", "listWorkHistory", "List the work history of a project", route.Lists, h.listWork).
			DescribedAs("Lists who did what in the project and when, the newest first: turns, conversations that were created, moved or deleted, and " +
				"changes of the project, its settings and its instructions."),
		route.Call("GET", path+"/conversations", "listProjectConversations", "List the conversations of a project", route.Lists, h.listConversations).
			DescribedAs("Lists the conversations of a project in the order of the account's list. The list of a deleted project is empty."),
		route.Call("POST", path+"/conversations", "createProjectConversation", "Create a conversation in a project", route.Creates, h.createConversation).
			DescribedAs("Creates a conversation without messages in an active project.").
			WithExample(route.Object{"title": "The new oven", "profile": "balanced"}).WithStatus(stdhttp.StatusCreated).
			WithCodes(protocol.CodeConflict),
	}
}

func (h *Handlers) textRoutes(path string) []route.Route {
	return []route.Route{
		route.Call("GET", path+"/settings", "getProjectSettings", "Get the settings of a project", route.Reads, h.getSettings).
			DescribedAs("Returns the settings of a project. Settings that were never changed have version 0."),
		route.Call("PUT", path+"/settings", "putProjectSettings", "Replace the settings of a project", route.Writes, h.putSettings).WithMaxBody(route.MediumBody).
			DescribedAs("Replaces the settings of an active project, for turns that start from now on. Requires their current version in If-Match or in `version`.").
			WithExample(route.Object{"default_profile": "coding", "memory_scope": "project", "tools": route.Object{"off": []string{"calculate"}}, "approval_policy": "effects", "version": 0}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
		route.Call("GET", path+"/instructions", "getInstructions", "Get the instructions of a project", route.Reads, h.getInstructions).
			DescribedAs("Returns the instructions of a project, or an older version of them. Instructions that were never written are empty and have version 0."),
		route.Call("PUT", path+"/instructions", "putInstructions", "Replace the instructions of a project", route.Writes, h.putInstructions).WithMaxBody(route.MediumBody).
			DescribedAs("Stores a new version of the instructions of an active project; earlier versions are kept. "+
				"The model gets them in every turn that starts from now on. Requires their current version in If-Match or in `version`.").
			WithExample(route.Object{"content": "Answer in one paragraph. Use metric units.", "version": 0}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
	}
}
