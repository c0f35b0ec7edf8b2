package accountdata

import (
	"context"
	_ "embed"
	"io"
	"mime"
	stdhttp "net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/http/transfer"
	"turnstone/protocol"
)

//go:embed import.md
var importDescription string

// Imports stores and runs imports.
type Imports interface {
	Receive(ctx context.Context, account protocol.AccountID, body io.Reader, size int64) (*protocol.Import, error)
	Import(ctx context.Context, account protocol.AccountID, id protocol.ImportID) (*protocol.Import, error)
	ListImports(ctx context.Context, account protocol.AccountID, after *protocol.ImportID, limit int) (page []protocol.Import, next *protocol.ImportID, err error)
	Cancel(ctx context.Context, account protocol.AccountID, id protocol.ImportID) (*protocol.Import, error)
}

// importMedia are the media types of an upload.
var importMedia = []string{"application/zip", "application/json", "application/octet-stream", "application/x-zip-compressed"}

func documentImport(api huma.API, op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for _, media := range importMedia {
		content[media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	content["application/json"] = &huma.MediaType{Example: []any{route.Object{
		"id": "6f1a", "title": "Tides", "create_time": 1764000000, "current_node": "b", "mapping": route.Object{
			"a": route.Object{"id": "a", "parent": nil, "children": []any{"b"}, "message": nil},
			"b": route.Object{"id": "b", "parent": "a", "children": []any{}, "message": route.Object{
				"id": "b", "author": route.Object{"role": "user"}, "content": route.Object{"content_type": "text", "parts": []any{"Why are there two tides a day?"}},
			}},
		},
	}}}
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The export.", Content: content}
	op.Metadata["raw"] = true
	route.JSONResponse[protocol.Import](api, op, stdhttp.StatusAccepted, "The upload is stored, and the import is queued.")
	op.Responses[strconv.Itoa(stdhttp.StatusAccepted)].Headers = route.Headers("Location")
}

func (h *Handlers) createImport(w stdhttp.ResponseWriter, r *stdhttp.Request, _ *resource.Nothing) (err error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(importMedia, media) {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The Content-Type must be application/zip, application/json or application/octet-stream.")
	}
	if err := transfer.CheckUncompressed(r); err != nil {
		return err
	}
	ctx, body, end := transfer.Receive(w, r, h.Sessions)
	defer end(&err)
	made, err := h.Imports.Receive(ctx, exchange.CallerOf(ctx).AccountID, body, r.ContentLength)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/account/imports/"+made.ImportID.String())
	return response.SendJSON(w, stdhttp.StatusAccepted, made)
}

type listImportsInput struct{ resource.PageInput }

func (h *Handlers) listImports(ctx context.Context, in *listImportsInput) (*resource.Body[protocol.List[protocol.Import]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "imports", func(after *protocol.ImportID) ([]protocol.Import, *protocol.ImportID, error) {
		return h.Imports.ListImports(ctx, caller.AccountID, after, in.Limit)
	})
}

type importPath struct {
	ImportID protocol.ImportID `path:"import_id"`
}

func (h *Handlers) getImport(ctx context.Context, in *importPath) (*resource.Body[*protocol.Import], error) {
	found, err := h.Imports.Import(ctx, exchange.CallerOf(ctx).AccountID, in.ImportID)
	if err != nil {
		return nil, err
	}
	return resource.OK(found), nil
}

func (h *Handlers) cancelImport(ctx context.Context, in *importPath) (*resource.Body[*protocol.Import], error) {
	cancelled, err := h.Imports.Cancel(ctx, exchange.CallerOf(ctx).AccountID, in.ImportID)
	if err != nil {
		return nil, err
	}
	return resource.OK(cancelled), nil
}
