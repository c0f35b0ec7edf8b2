package files

import (
	_ "embed" // the descriptions of operations
	stdhttp "net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/http/transfer"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

//go:embed receive_content.md
var receiveDescription string

// Routes returns the routes of uploads and files.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "files", Description: "Uploads, and the files of the account: the library."}},
		Params: []route.Param{
			route.Identifier("upload_id", h.StoredUploads.OwnsUpload),
			route.Identifier("file_id", h.Store.OwnsFile),
		},
		Routes: slices.Concat(h.uploadRoutes(), h.fileRoutes(), h.projectRoutes()),
	}
}

func (h *Handlers) uploadRoutes() []route.Route {
	const path = "/files/uploads/{upload_id}"
	follow := route.Policy{Conflicts: true}
	return []route.Route{
		route.Call("POST", "/files/uploads", "createUpload", "Start an upload", route.Uploads, h.create).
			DescribedAs("Creates an upload, which waits for its content. A file over the limit of the service, or over what the account may still "+
				"store, gets 413. A repeated request with the same Idempotency-Key and another body gets 409.").
			WithExample(route.Object{"filename": "tides.pdf", "media_type": "application/pdf", "size": 48213, "purpose": "attachment"}).
			WithCodes(protocol.CodeTooManyUploads, protocol.CodeTooManyFiles, protocol.CodeIdempotencyReused, protocol.CodeConflict).WithStatus(stdhttp.StatusCreated),
		route.Stream("GET", path, "getUpload", "Get an upload", route.Reads.Unstored(), h.getUpload).
			DescribedAs("Returns the state and the progress of an upload. With `wait`, a request for an upload that has not ended waits for a change.").
			Documented(func(api huma.API, op *huma.Operation) {
				route.JSONResponse[protocol.Upload](api, op, stdhttp.StatusOK, "The upload.")
			}),
		route.Stream("GET", path+"/events", "followUpload", "Stream the events of an upload", follow, h.getEvents).
			DescribedAs("Streams the events of an upload that follow the sequence in Last-Event-ID or `after`; the header takes precedence. "+
				"Any node serves the stream, and an event has the same bytes every time. The stream ends after `upload.finished`.").
			WithCodes(protocol.CodeSequenceAhead, protocol.CodeTooManyStreams).
			Documented(documentEvents),
		route.Stream("PUT", path+"/content", "putUploadContent", "Send the content of an upload", route.Writes, h.putContent).
			DescribedAs(receiveDescription).
			WithCodes(protocol.CodeConflict, protocol.CodeUploadFinished, protocol.CodeUploadExpired, protocol.CodeTooLarge, protocol.CodeUnsupportedMedia, protocol.CodeInvalidBody).
			Documented(documentContent),
		route.Call("DELETE", path, "cancelUpload", "Cancel an upload", route.Writes.Unstored(), h.cancel).
			DescribedAs("Ends an upload that has not ended, and deletes what was received. An upload that has ended gets 409 with the upload in `current`, an expired one 410.").
			WithCodes(protocol.CodeUploadFinished, protocol.CodeUploadExpired).WithStatus(stdhttp.StatusOK),
	}
}

func documentEvents(api huma.API, op *huma.Operation) {
	op.Responses["200"] = &huma.Response{
		Description: "The events of the upload, until its end. Each one is a server-sent event with its sequence in `id`.",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Ref: "#/components/schemas/UploadEvent"}}},
	}
	op.Responses["204"] = &huma.Response{Description: "The upload has ended, and the client has received all of its events."}
}

func documentContent(api huma.API, op *huma.Operation) {
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The content.", Content: map[string]*huma.MediaType{
		filetype.OctetStream: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		"*/*":                {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}
	op.Metadata["raw"] = true
	route.JSONResponse[protocol.Upload](api, op, stdhttp.StatusOK, "The upload in its final state.")
	route.JSONResponse[protocol.Upload](api, op, stdhttp.StatusAccepted, "The content is stored, and the scan has not ended.")
}

func (h *Handlers) fileRoutes() []route.Route {
	const path = "/files/{file_id}"
	return []route.Route{
		route.Call("GET", "/files", "listFiles", "List files", route.Lists, h.list).
			DescribedAs("Lists the files of the account: the library."),
		route.Call("GET", "/files/picker", "pickFiles", "Find files for a message", route.Lists, h.pick).
			DescribedAs("Returns a few files of the account whose names contain a text. " +
				"First come the recently used ones, then those of the project of the conversation, then the newest of the library."),
		route.Call("POST", "/files/attachment-states", "getAttachmentStates", "Get the states of files", route.Reads, h.states).
			DescribedAs("Returns the states of up to 50 files, in the order of the request. " +
				"A file that was deleted from the library while messages have it is `deleted`; no new message can have it. " +
				"One that does not exist, or belongs to another account, is `missing`.").
			WithExample(route.Object{"file_ids": []any{"file_01h2xcejqtf2nbrexx3vqjhp41"}}),
		route.Stream("POST", "/conversations/{conversation_id}/attachments", "prepareAttachments", "Prepare the files of a message", route.Reads, h.prepare).
			DescribedAs("Returns what a model will get of the files of a message: their whole texts, passages, a picture, or nothing, with the reason. " +
				"It waits up to ten seconds for files that are being read. It changes nothing: `POST /chat` sends the files. " +
				"The files of earlier messages share the space, so the model may get less. " +
				"If the account has not all of the files, the response is 409 `conflict` with their states in `current`.").
			WithExample(route.Object{"file_ids": []any{"file_01h2xcejqtf2nbrexx3vqjhp41"}}).
			WithCodes(protocol.CodeConflict).
			Documented(func(api huma.API, op *huma.Operation) {
				route.JSONResponse[preparedFiles](api, op, stdhttp.StatusOK, "What a model will get of each file.")
			}),
		route.Call("GET", path, "getFile", "Get a file", route.Reads, h.get).
			DescribedAs("Returns the detected type, the size, the hash, the verdict of the malware scanner, the state of the text, and the number of " +
				"pages or the size of a picture. A file that was deleted from the library can be read while a message has it."),
		route.Stream("GET", path+"/content", "getFileContent", "Download a file", route.Reads.Unstored(), h.getContent).
			DescribedAs("Sends the content, or one range of it. A content never changes: its `ETag` is its SHA-256, and its `Last-Modified` the time " +
				"of the upload. `If-Range` is honoured; there is no 304. Several ranges get 416. " +
				"A client that accepts nothing for 30 seconds is disconnected.").
			WithCodes(protocol.CodeRange).
			Documented(transfer.DocumentFile),
		route.Stream("GET", path+"/thumbnail", "getFileThumbnail", "Get the thumbnail of a file", route.Reads.Unstored(), h.getThumbnail).
			DescribedAs("Sends a small version of a picture, or of the first page of a PDF, of at most 512 pixels on its longer side and 128 KiB: " +
				"JPEG, or PNG if it is transparent somewhere. It is encoded again, upright and without the metadata of the original; of an animation, " +
				"it is the first picture. It exists as soon as `has_thumbnail` of the file is true. " +
				"A picture of more than 40 megapixels, one of a format that the service cannot read (HEIC), and any other file get 404.").
			Documented(documentThumbnail),
		route.Call("GET", path+"/text", "getFileText", "Get the text of a file", route.Lists, h.getText).
			DescribedAs("Returns a range of the text of a file, and the pages, sheets, slides or chapters in it. " +
				"Offsets and lengths are bytes of UTF-8, and a range never cuts a character. " +
				"The text is read after the upload: until then, its state is `pending`. " +
				"A picture, a sound and an archive have none, and a document that is encrypted or damaged, or that the service cannot read, is " +
				"`failed` with a reason. Of a long text, the first 4 MiB are kept."),
		route.Call("PATCH", path, "renameFile", "Change a file", route.Writes, h.change).
			DescribedAs("Changes the name of a file, or keeps a file that was uploaded for a temporary conversation in the library. " +
				"Without that, such a file ends with its conversation, unless it belongs to a project or another conversation has it.").
			WithExample(route.Object{"filename": "tides-2026.pdf"}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("DELETE", path, "deleteFile", "Delete a file", route.Writes, h.delete).
			DescribedAs("Removes a file from the library and from its projects. If no message has it, its content is deleted. " +
				"Otherwise it can still be read, and counts for the quota, until the last such message is erased.").
			WithCodes(protocol.CodeStaleVersion),
	}
}

func documentThumbnail(_ huma.API, op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for _, media := range []string{"image/jpeg", "image/png"} {
		content[media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	op.Responses[strconv.Itoa(stdhttp.StatusOK)] = &huma.Response{Description: "The thumbnail.", Content: content, Headers: route.Headers("Content-Disposition")}
}

func (h *Handlers) projectRoutes() []route.Route {
	const path = "/projects/{project_id}/files"
	return []route.Route{
		route.Call("GET", path, "listProjectFiles", "List the files of a project", route.Lists, h.listOfProject).
			DescribedAs("Lists the files of a project, the newest first."),
		route.Call("POST", path, "addProjectFile", "Add a file to a project", route.Creates, h.addToProject).
			DescribedAs("Makes a file of the account one of the files of an active project. A file that it already is stays unchanged, so the request can be repeated.").
			WithExample(route.Object{"file_id": "file_01h2xcejqtf2nbrexx3vqjhp41"}).
			WithCodes(protocol.CodeConflict),
		route.Call("DELETE", path+"/{file_id}", "removeProjectFile", "Remove a file from a project", route.Writes, h.removeFromProject).
			DescribedAs("Removes a file from an active project. It stays in the library.").
			WithCodes(protocol.CodeConflict),
	}
}
