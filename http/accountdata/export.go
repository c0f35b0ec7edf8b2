package accountdata

import (
	"context"
	_ "embed"
	"io"
	stdhttp "net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/http/transfer"
	"turnstone/persistence/audit"
	"turnstone/persistence/exports"
	"turnstone/protocol"
)

//go:embed export.md
var exportDescription string

// Exports writes what an account owns.
type Exports interface {
	Begin(ctx context.Context, account protocol.AccountID) (*exports.Export, error)
	Conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*exports.Document, error)
}

// documentFile documents a response that is a file.
func documentFile(description, media string) func(huma.API, *huma.Operation) {
	return func(_ huma.API, op *huma.Operation) {
		op.Responses[strconv.Itoa(stdhttp.StatusOK)] = &huma.Response{
			Description: description,
			Headers:     route.Headers("Content-Disposition"),
			Content:     map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		}
	}
}

func documentConversation(api huma.API, op *huma.Operation) {
	documentFile("The conversation.", "text/markdown")(api, op)
	file := op.Responses[strconv.Itoa(stdhttp.StatusOK)]
	route.JSONResponse[protocol.ConversationExport](api, op, stdhttp.StatusOK, file.Description)
	of := op.Responses[strconv.Itoa(stdhttp.StatusOK)]
	of.Headers = file.Headers
	of.Content["text/markdown"] = file.Content["text/markdown"]
}

func (h *Handlers) exportAccount(w stdhttp.ResponseWriter, r *stdhttp.Request, _ *resource.Nothing) error {
	name := response.Attachment("turnstone-export-"+h.Now().UTC().Format("2006-01-02"), "turnstone-export", ".zip")
	return transfer.Send(w, r, transfer.OfSession(r, h.Sessions), h.Log, name, "application/zip", func(ctx context.Context, to *transfer.Download) error {
		caller := exchange.CallerOf(ctx)
		export, err := h.Exports.Begin(ctx, caller.AccountID)
		if err != nil {
			return err
		}
		defer export.Close()
		by := exchange.Of(ctx).Requester()
		if r.Method == stdhttp.MethodHead {
			return to.Headers()
		}
		return h.exports.Produce(ctx, caller.AccountID, to, func(to io.Writer) error {
			if err := h.Audit.Record(ctx, caller.AccountID, audit.EventAccountExported, &caller.SessionID, nil, by); err != nil {
				return err
			}
			return export.WriteArchive(to)
		})
	})
}

type exportConversationInput struct {
	resource.InConversation
	Format string `query:"format" enum:"json,markdown" default:"json"`
}

func (h *Handlers) exportConversation(w stdhttp.ResponseWriter, r *stdhttp.Request, in *exportConversationInput) error {
	account := exchange.CallerOf(r.Context()).AccountID
	document, err := h.Exports.Conversation(r.Context(), account, in.ConversationID)
	if err != nil {
		return err
	}
	if document.Temporary {
		return protocol.Conflict(protocol.CodeConflict, map[string]bool{"temporary": true}, "A temporary conversation cannot be exported.")
	}
	write, extension, media := document.WriteJSON, ".json", "application/json"
	if in.Format == "markdown" {
		write, extension, media = document.WriteMarkdown, ".md", "text/markdown; charset=utf-8"
	}
	name := response.Attachment(document.Title, in.ConversationID.String(), extension)
	return transfer.Send(w, r, transfer.OfSession(r, h.Sessions), h.Log, name, media, func(ctx context.Context, to *transfer.Download) error {
		return h.exports.Produce(ctx, account, to, func(to io.Writer) error { return write(ctx, to) })
	})
}
