// Package shares handles the requests for shares: snapshots of conversations that everybody who has their address can read,
// as JSON and as a page that needs neither a script nor a session.
//
// It contains no SQL. A page shows only what is in its snapshot, and package markdown renders it.
package shares

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/persistence/audit"
	"turnstone/persistence/shares"
	"turnstone/protocol"
	"turnstone/protocol/recent"
)

// Store stores shares; see package persistence/shares.
type Store interface {
	Create(ctx context.Context, account protocol.AccountID, request *shares.NewShare) (share *protocol.Share, err error)
	Preview(
		ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, message *protocol.MessageID, after *shares.PreviewPosition, limit int,
	) (preview *protocol.SharePreview, next *shares.PreviewPosition, err error)
	List(ctx context.Context, account protocol.AccountID, after *protocol.ShareID, limit int) (page []protocol.Share, next *protocol.ShareID, err error)
	ListOfConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *protocol.ShareID, limit int) (page []protocol.Share, next *protocol.ShareID, err error)
	Get(ctx context.Context, account protocol.AccountID, share protocol.ShareID) (*protocol.Share, error)
	Revoke(ctx context.Context, account protocol.AccountID, share protocol.ShareID, session protocol.SessionID, by audit.Requester) error
	Open(ctx context.Context, hash []byte, page int) (*shares.Opened, error)
	OpenFile(ctx context.Context, hash []byte, n int) (*shares.OpenedFile, error)
	OpenArtifact(ctx context.Context, hash []byte, n int) (*shares.OpenedArtifact, error)
	ArtifactContent(ctx context.Context, of *shares.OpenedArtifact) (string, error)
	RecordOpens(ctx context.Context, share shares.Ref, count int64, at time.Time) error
}

// Config has the dependencies of Handlers.
type Config struct {
	Store   Store
	Files   Files
	Limits  *exchange.Limits
	Keys    *auth.Keys
	BaseURL *url.URL
	Now     func() time.Time
	Log     *zap.Logger
	App     fs.FS         // the built app, whose typeface pages use; nil: none
	Recheck time.Duration // interval at which a download asks whether its share has ended; 0: 4 s
}

// Handlers handle the requests for shares. Their methods may be called from any goroutine.
type Handlers struct {
	Config
	opens     opens
	slots     chan struct{} // of pages that are being rendered
	pages     *recent.Cache[pageKey, []byte]
	layout    *layout
	downloads exchange.SlotCounter[string] // by address
}

// New returns Handlers.
func New(config Config) *Handlers {
	config.Recheck = cmp.Or(config.Recheck, recheckInterval)
	return &Handlers{Config: config, slots: make(chan struct{}, renderSlots), pages: newPageCache(), layout: newLayout(config.App)}
}

const defaultDays = 30

type createInput struct {
	resource.InConversation
	Body struct {
		Title         string                `json:"title,omitempty" doc:"Up to 200 characters. Default: the title of the conversation."`
		MessageID     *protocol.MessageID   `json:"message_id,omitempty" nullable:"true" doc:"The last message of the snapshot. Default: the last finished message of the active branch."`
		FileIDs       []protocol.FileID     `json:"file_ids,omitempty" maxItems:"50" doc:"The files of the messages that readers may download. Default: none."`
		ArtifactIDs   []protocol.ArtifactID `json:"artifact_ids,omitempty" maxItems:"20" doc:"The artifacts of the conversation of which readers may download a copy. Default: none."`
		ExpiresInDays int                   `json:"expires_in_days,omitempty" enum:"1,7,30,90" default:"30"`
	}
}

func (h *Handlers) create(ctx context.Context, in *createInput) (*resource.CreatedOnce[protocol.CreatedShare], error) {
	title := strings.TrimSpace(in.Body.Title)
	if utf8.RuneCountInString(title) > protocol.MaxTitle {
		return nil, protocol.Invalid("body.title", fmt.Sprintf("must have at most %d characters", protocol.MaxTitle))
	}
	days := in.Body.ExpiresInDays
	if days == 0 {
		days = defaultDays
	}
	caller, id := exchange.CallerOf(ctx), protocol.NewShareID()
	token, version := h.Keys.ShareToken(id)
	share, err := h.Store.Create(ctx, caller.AccountID, &shares.NewShare{
		ShareID: id, ConversationID: in.ConversationID, MessageID: in.Body.MessageID, Title: title, Days: days,
		FileIDs: eachOnce(in.Body.FileIDs), ArtifactIDs: eachOnce(in.Body.ArtifactIDs),
		TokenHash: hashOf(token), KeyVersion: version, SessionID: caller.SessionID, By: exchange.AuthOf(ctx).Requester(),
	})
	if err != nil {
		return nil, err
	}
	created := h.withToken(share, token)
	return resource.NewCreatedOnce("", &created), nil
}

func eachOnce[ID comparable](ids []ID) (distinct []ID) {
	for _, id := range ids {
		if !slices.Contains(distinct, id) {
			distinct = append(distinct, id)
		}
	}
	return distinct
}

func hashOf(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

func (h *Handlers) withToken(share *protocol.Share, token string) protocol.CreatedShare {
	return protocol.CreatedShare{Share: *share, Token: token, URL: h.BaseURL.JoinPath("s", token).String()}
}

// restoreToken adds the token to the stored response of a creation. The token is not stored, so it is derived again.
func (h *Handlers) restoreToken(stored []byte) ([]byte, error) {
	var share shares.Stored
	if err := json.Unmarshal(stored, &share); err != nil {
		return nil, fmt.Errorf("reading the stored response of a share: %w", err)
	}
	token, live := h.Keys.ShareTokenOf(share.KeyVersion, share.ShareID)
	if !live {
		return nil, protocol.Conflict(protocol.CodeConflict, share.Share,
			"The share was created with a secret that the service no longer has, so its address cannot be repeated. Revoke it and create another.")
	}
	var body bytes.Buffer
	if err := response.WriteJSON(&body, h.withToken(&share.Share, token)); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

type previewInput struct {
	resource.InConversation
	resource.PageInput
	MessageID protocol.MessageID `query:"message_id" doc:"The last message of the snapshot. Default: the last finished message of the active branch."`
}

func (h *Handlers) preview(ctx context.Context, in *previewInput) (*resource.Body[protocol.SharePreview], error) {
	scope, caller := "share preview "+in.ConversationID.String(), exchange.CallerOf(ctx)
	after, err := resource.OpenCursor[shares.PreviewPosition](caller, h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	var message *protocol.MessageID
	if !in.MessageID.IsZero() {
		message = &in.MessageID
	}
	if after != nil && message != nil && *message != after.MessageID {
		return nil, protocol.Invalid("query.message_id", "is not the message of the cursor")
	}
	preview, next, err := h.Store.Preview(ctx, caller.AccountID, in.ConversationID, message, after, in.Limit)
	if err != nil {
		return nil, err
	}
	preview.NextCursor, preview.HasMore = resource.SealCursor(caller, h.Keys, scope, next), next != nil
	return resource.OK(*preview), nil
}

type listOfConversationInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) listOfConversation(ctx context.Context, in *listOfConversationInput) (*resource.Body[protocol.List[protocol.Share]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "shares "+in.ConversationID.String(), func(after *protocol.ShareID) ([]protocol.Share, *protocol.ShareID, error) {
		return h.Store.ListOfConversation(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	})
}

type listInput struct{ resource.PageInput }

func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.Share]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "shares", func(after *protocol.ShareID) ([]protocol.Share, *protocol.ShareID, error) {
		return h.Store.List(ctx, caller.AccountID, after, in.Limit)
	})
}

type sharePath struct {
	ShareID protocol.ShareID `path:"share_id"`
}

func (h *Handlers) get(ctx context.Context, in *sharePath) (*resource.Body[*protocol.Share], error) {
	share, err := h.Store.Get(ctx, exchange.CallerOf(ctx).AccountID, in.ShareID)
	if err != nil {
		return nil, err
	}
	return resource.OK(share), nil
}

func (h *Handlers) revoke(ctx context.Context, in *sharePath) (*resource.Nothing, error) {
	caller := exchange.CallerOf(ctx)
	return nil, h.Store.Revoke(ctx, caller.AccountID, in.ShareID, caller.SessionID, exchange.AuthOf(ctx).Requester())
}

// maxPage is more than the number of pages of any share.
const maxPage = protocol.MaxSharedMessages

type openInput struct {
	Token string `path:"token" doc:"The token of the share."`
	Page  int    `query:"page" minimum:"1" maximum:"20000" default:"1" doc:"The number of the page. A page that does not exist gets 404."`
}

func (h *Handlers) open(ctx context.Context, in *openInput) (*resource.Body[protocol.SharedPage], error) {
	opened, err := h.Store.Open(ctx, hashOf(in.Token), in.Page)
	if err != nil {
		return nil, err
	}
	h.opens.add(opened, h.Now())
	return resource.OK(opened.SharedPage), nil
}
