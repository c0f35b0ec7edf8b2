// Package artifacts handles the requests for artifacts: documents that the model and the user write together, in versions. It
// holds no state; package persistence/artifacts decides what is stored.
package artifacts

import (
	"context"
	stdhttp "net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/http/transfer"
	"turnstone/persistence/artifacts"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Store stores artifacts; see package persistence/artifacts.
type Store interface {
	OwnsArtifact(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID) error
	List(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, after *protocol.ArtifactID, limit int) (page []protocol.Artifact, next *protocol.ArtifactID, err error)
	Artifact(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID) (*protocol.Artifact, error)
	Versions(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID, before *int64, limit int) (page []protocol.ArtifactVersion, next *int64, err error)
	Content(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID, version *int64) (*turnlog.ArtifactContent, error)
	Diff(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID, from, to int64) (*protocol.ArtifactDiff, error)
	Put(ctx context.Context, account protocol.AccountID, change *artifacts.Change, title, content string) (*protocol.Artifact, error)
	Restore(ctx context.Context, account protocol.AccountID, change *artifacts.Change, version int64) (*protocol.Artifact, error)
}

// Handlers handle the requests for artifacts.
type Handlers struct {
	Store    Store
	Sessions exchange.Sessions
	Keys     *auth.Keys
	Log      *zap.Logger
}

// InArtifact is embedded by inputs of routes below an artifact.
type InArtifact struct {
	ArtifactID protocol.ArtifactID `path:"artifact_id"`
}

type listInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.Artifact]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "artifacts "+in.ConversationID.String(), func(after *protocol.ArtifactID) ([]protocol.Artifact, *protocol.ArtifactID, error) {
		return h.Store.List(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	})
}

func (h *Handlers) get(ctx context.Context, in *InArtifact) (*resource.Versioned[protocol.Artifact], error) {
	return resource.WithETag(h.Store.Artifact(ctx, exchange.CallerOf(ctx).AccountID, in.ArtifactID))
}

type versionsInput struct {
	InArtifact
	resource.PageInput
}

func (h *Handlers) versions(ctx context.Context, in *versionsInput) (*resource.Body[protocol.List[protocol.ArtifactVersion]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "versions "+in.ArtifactID.String(), func(before *int64) ([]protocol.ArtifactVersion, *int64, error) {
		return h.Store.Versions(ctx, caller.AccountID, in.ArtifactID, before, in.Limit)
	})
}

type diffInput struct {
	InArtifact
	From int64 `query:"from" required:"true" minimum:"1" doc:"The version to compare with, usually the older one."`
	To   int64 `query:"to" minimum:"1" doc:"The version that is compared. Default: the current one."`
}

func (h *Handlers) diff(ctx context.Context, in *diffInput) (*resource.Body[protocol.ArtifactDiff], error) {
	account := exchange.CallerOf(ctx).AccountID
	if in.To == 0 {
		current, err := h.Store.Artifact(ctx, account, in.ArtifactID)
		if err != nil {
			return nil, err
		}
		in.To = current.Version
	}
	diff, err := h.Store.Diff(ctx, account, in.ArtifactID, in.From, in.To)
	if err != nil {
		return nil, err
	}
	return resource.OK(*diff), nil
}

type putArtifactInput struct {
	InArtifact
	resource.IfMatch
	Body struct {
		Content string `json:"content" doc:"At most 1 MiB."`
		Title   string `json:"title,omitempty" doc:"1 to 200 characters. Default: the present title."`
		Version *int64 `json:"version,omitempty" doc:"The version of the artifact that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) put(ctx context.Context, in *putArtifactInput) (*resource.Versioned[protocol.Artifact], error) {
	if len(in.Body.Content) > protocol.MaxArtifactBytes {
		return nil, protocol.Errorf(protocol.CodeTooLarge, "The content has %d bytes. A version of an artifact has at most %d.", len(in.Body.Content), protocol.MaxArtifactBytes)
	}
	title, err := resource.OptionalTitle("body.title", in.Body.Title)
	if err != nil {
		return nil, err
	}
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Store.Put(ctx, exchange.CallerOf(ctx).AccountID, &artifacts.Change{ArtifactID: in.ArtifactID, Version: version}, title, in.Body.Content))
}

type restoreArtifactInput struct {
	InArtifact
	resource.IfMatch
	Body struct {
		Version     int64  `json:"version" minimum:"1" doc:"The version that becomes the new one."`
		BaseVersion *int64 `json:"base_version,omitempty" doc:"The version of the artifact that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) restore(ctx context.Context, in *restoreArtifactInput) (*resource.Versioned[protocol.Artifact], error) {
	base, err := in.RequiredVersion(in.Body.BaseVersion)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Store.Restore(ctx, exchange.CallerOf(ctx).AccountID, &artifacts.Change{ArtifactID: in.ArtifactID, Version: base}, in.Body.Version))
}

type contentInput struct {
	InArtifact
	Version int64  `query:"version" minimum:"1" doc:"Default: the current version."`
	Format  string `query:"format" enum:"csv,html,docx" doc:"Of a table: csv for spreadsheets. Of a document: html, a page that loads nothing, or docx for word processors. Default: the content as it is stored."`
}

// content sends the content of a version. It is never a page: the web app runs contents only on the sandbox origin.
func (h *Handlers) content(w stdhttp.ResponseWriter, r *stdhttp.Request, in *contentInput) error {
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	var version *int64
	if in.Version != 0 {
		version = &in.Version
	}
	found, err := h.Store.Content(bounded, exchange.CallerOf(r.Context()).AccountID, in.ArtifactID, version)
	if err != nil {
		return err
	}
	file, err := resource.FileOfArtifact(bounded, in.Format, found.Kind, found.Language, found.Title, found.Content)
	if err != nil {
		return err
	}
	disposition := response.Attachment(found.Title, "artifact", file.Extension)
	return transfer.Send(w, r, transfer.OfSession(r, h.Sessions), h.Log, disposition, file.Media, func(_ context.Context, to *transfer.Download) error {
		transfer.WriteSafeHeader(w.Header())
		w.Header().Set("ETag", response.ETagOf(found.Version))
		w.Header().Set("Content-Length", strconv.Itoa(len(file.Content)))
		_, err := to.Write(file.Content)
		return err
	})
}

// documentContent documents the response of a download.
func documentContent(_ huma.API, op *huma.Operation) {
	op.Responses[strconv.Itoa(stdhttp.StatusOK)] = &huma.Response{
		Description: "The content.",
		Headers:     route.Headers("Content-Disposition", "Content-Length", "ETag"),
		Content: map[string]*huma.MediaType{
			"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}},
			"text/csv":   {Schema: &huma.Schema{Type: huma.TypeString}},
			"text/html":  {Schema: &huma.Schema{Type: huma.TypeString}},
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}
}
