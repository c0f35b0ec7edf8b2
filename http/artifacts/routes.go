package artifacts

import (
	"turnstone/http/route"
	"turnstone/protocol"
)

const (
	path = "/artifacts/{artifact_id}"
	// maxBody is the size of a body with a content of 1 MiB, in which every character may be written as an escape.
	maxBody   = 2 << 20
	changeDoc = " The change is based on the version in If-Match: if the artifact has another one meanwhile, the request fails with 409 `stale_version`, and `current` has the artifact. " +
		"An artifact keeps its newest 200 versions. The versions count in the storage quota of the account (413). In an archived project, artifacts cannot be changed (409)."
)

// Routes returns the routes of artifacts.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags:   []route.Tag{{Name: "artifacts", Description: "Documents, code, pages and tables that the model and the user write together."}},
		Params: []route.Param{route.Identifier("artifact_id", h.Store.OwnsArtifact)},
		Routes: []route.Route{
			route.Call("GET", "/conversations/{conversation_id}/artifacts", "listArtifacts", "List the artifacts of a conversation", route.Lists, h.list).
				DescribedAs("Lists the artifacts of a conversation, on all of its branches, newest first. The model creates them with the tool `write_artifact`; a conversation has at most 200. " +
					"They are found by searches, are in the export of the account, and end with their conversation. A fork has copies of those that its messages show, with the versions that they show."),
			route.Call("GET", path, "getArtifact", "Get an artifact", route.Reads, h.get).
				DescribedAs("Returns an artifact without its content."),
			route.Call("GET", path+"/versions", "listArtifactVersions", "List the versions of an artifact", route.Lists, h.versions).
				DescribedAs("Lists the versions of an artifact, newest first, without their contents. A version never changes."),
			route.Call("GET", path+"/diff", "diffArtifact", "Compare two versions of an artifact", route.Lists, h.diff).
				DescribedAs("Compares two versions of an artifact line by line. A version that the artifact does not have, or no longer has, gets 404."),
			route.Call("PUT", path, "putArtifact", "Change an artifact", route.Writes, h.put).
				DescribedAs("Stores a new version with a content of at most 1 MiB (413), written by the user. "+
					"A table must be CSV as in RFC 4180, with the same number of cells in every row (422); it is stored with line feeds, and every cell is "+
					"text. "+
					"A request that repeats what is stored changes nothing, and needs no version."+changeDoc).
				WithExample(route.Object{"content": "# Plan\n\n1. Measure\n2. Cut\n", "title": "Plan"}).
				WithMaxBody(maxBody).WithCodes(protocol.CodeTooLarge, protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
			route.Call("POST", path+"/restore", "restoreArtifact", "Restore a version of an artifact", route.Writes, h.restore).
				DescribedAs("Stores the content and the title of an older version as a new version. Versions in between stay."+changeDoc).
				WithExample(route.Object{"version": 2}).WithCodes(protocol.CodeTooLarge, protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict),
			route.Stream("GET", path+"/content", "getArtifactContent", "Download an artifact", route.Lists, h.content).
				DescribedAs("Sends the content of a version as a download of the type text/plain, which no browser runs. " +
					"With `format=csv`, a table has the type text/csv, line ends as in RFC 4180, and an apostrophe before each cell that a spreadsheet " +
					"would take for a formula; PUT removes these apostrophes again. With `format=html` and `format=docx`, a document is a page that loads " +
					"nothing, or a file for word processors.").
				Documented(documentContent),
		},
	}
}
