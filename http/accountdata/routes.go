package accountdata

import (
	_ "embed" // the descriptions of operations
	"fmt"
	stdhttp "net/http"
	"slices"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of exports, imports and erasures.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Params: []route.Param{route.Identifier[protocol.ImportID]("import_id", nil)},
		Routes: slices.Concat(h.exportRoutes(), h.importRoutes(), h.erasureRoutes()),
	}
}

func (h *Handlers) exportRoutes() []route.Route {
	policy := route.Reads.Unstored()
	policy.Conflicts = true
	return []route.Route{
		route.Stream("GET", "/account/export", "exportAccount", "Export the account", policy.Recent(), h.exportAccount).
			DescribedAs(exportDescription).
			WithCodes(protocol.CodeConflict).
			Documented(documentFile("The archive. Large exports take minutes; the size is not known in advance.", "application/zip")),
		route.Stream("GET", "/conversations/{conversation_id}/export", "exportConversation", "Export a conversation", policy, h.exportConversation).
			DescribedAs("Streams one conversation with all of its branches: as JSON, the form that `POST /account/imports` accepts and `GET " +
				"/account/export` contains, or as Markdown for people. A temporary conversation cannot be exported (409).").
			WithCodes(protocol.CodeConflict).
			Documented(documentConversation),
	}
}

func (h *Handlers) importRoutes() []route.Route {
	const path = "/account/imports"
	return []route.Route{
		route.Stream("POST", path, "createImport", "Import an export", route.Imports, h.createImport).WithMaxBody(protocol.MaxImportBytes).
			DescribedAs(fmt.Sprintf(importDescription, protocol.MaxImportBytes>>30)).
			WithCodes(protocol.CodeConflict, protocol.CodeTooLarge, protocol.CodeUnsupportedMedia, protocol.CodeInvalidBody).
			WithStatus(stdhttp.StatusAccepted).Documented(documentImport),
		route.Call("GET", path, "listImports", "List imports", route.Lists, h.listImports).
			DescribedAs("Lists the imports of the account, newest first."),
		route.Call("GET", path+"/{import_id}", "getImport", "Get an import", route.Reads.Unstored(), h.getImport).
			DescribedAs("Returns the progress of an import and its report: what was imported, and what was changed or left out and why."),
		route.Call("DELETE", path+"/{import_id}", "cancelImport", "Cancel an import", route.Writes.Unstored(), h.cancelImport).
			DescribedAs("Ends an import that has not ended, at once. Conversations that it has imported stay; its upload is deleted. An import that has ended gets 409 with the import in `current`.").
			WithCodes(protocol.CodeConflict).WithStatus(stdhttp.StatusOK),
	}
}

func (h *Handlers) erasureRoutes() []route.Route {
	return []route.Route{
		route.Call("DELETE", "/account", "eraseAccount", "Erase the account", route.Writes.Unstored().Recent(), h.eraseAccount).
			DescribedAs(erasureDescription).
			WithCodes(protocol.CodeConfirmation).WithStatus(stdhttp.StatusAccepted),
	}
}
