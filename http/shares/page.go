package shares

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	stdhttp "net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/markdown"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/persistence/shares"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

const (
	// PagePattern is the path of the page of a share.
	PagePattern = "/s/{token}"
	pagePath    = "/s/"
	renderSlots = 2 // pages that are rendered at the same time; others wait
)

var pageTimeout = timelimit.Of(5 * time.Second)

// document is what the template shows: a page of a share, or the reason why there is none.
type document struct {
	Texts     *texts
	Shared    *protocol.SharedPage // nil: there is none
	Heading   string               // without a page
	Detail    string               // without a page
	Older     int                  // the number of the page before this one; 0: none
	Newer     int                  // of the page after it; 0: none
	Links     map[int]link         // by the numbers of the files
	Artifacts []artifactLink

	key    pageKey
	budget *markdown.Budget
}

// Markdown renders Markdown of the page, for the template.
func (d *document) Markdown(source string) template.HTML { return markdown.Render(d.budget, source) }

// Code highlights a part that is code, for the template.
func (d *document) Code(part protocol.SharedPart) template.HTML {
	return markdown.Code(d.budget, part.Code, part.Language)
}

// maxDescription is the longest description of a page, in characters.
const maxDescription = 200

// Description returns the start of the first message, which previews of links show.
func (d *document) Description() string {
	for i := range d.Shared.Messages {
		for _, part := range d.Shared.Messages[i].Parts {
			text := []rune(strings.Join(strings.Fields(part.Text), " "))
			if len(text) > maxDescription {
				return string(text[:maxDescription-1]) + "…"
			}
			if len(text) > 0 {
				return string(text)
			}
		}
	}
	return d.Texts.Notice
}

// FileOf returns the file of an attachment, for the template; nil: it is not shared.
func (d *document) FileOf(attachment protocol.SharedAttachment) *link {
	if attachment.N == nil {
		return nil
	}
	file := d.Links[*attachment.N]
	return &file
}

// Artifact returns the artifact of a part, for the template; nil: the share does not have it.
func (d *document) Artifact(n int) *artifactLink {
	for i := range d.Artifacts {
		if d.Artifacts[i].N == n {
			return &d.Artifacts[i]
		}
	}
	return nil
}

// GetPage responds with a page of a share as HTML. It needs no session, and ignores that of the caller.
func (h *Handlers) GetPage(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", h.layout.policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	shown := document{Texts: textsFor(r.Header.Get("Accept-Language"))}
	status, body := stdhttp.StatusOK, []byte(nil)
	err := h.find(ctx, w, r, &shown)
	if err == nil {
		body, err = h.render(ctx, &shown)
	}
	if err != nil {
		status = h.explain(w, r, err, &shown)
		var explained bytes.Buffer
		_ = h.layout.template.Execute(&explained, &shown) // a buffer takes everything
		body = explained.Bytes()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the reader may have disconnected
}

// find reads the page of a share that a request names.
func (h *Handlers) find(ctx context.Context, w stdhttp.ResponseWriter, r *stdhttp.Request, shown *document) error {
	address := auth.AddressKey(exchange.Of(ctx).Address)
	if err := h.Limits.Draw(r.Context(), route.BucketShared, address); err != nil {
		return err
	}
	number := 1
	if text := r.URL.Query().Get("page"); text != "" {
		var err error
		if number, err = strconv.Atoi(text); err != nil || number < 1 || number > maxPage {
			number = 0 // no share has this page
		}
	}
	token := strings.TrimPrefix(r.URL.Path, pagePath)
	opened, err := h.Store.Open(ctx, hashOf(token), number)
	if err != nil {
		return err
	}
	h.opens.add(opened, h.Now())
	shown.Shared, shown.Older = &opened.SharedPage, opened.Page-1
	links, files := linksOf(token, opened)
	shown.Artifacts = artifactsOf(token, shown.Shared)
	shown.Links, shown.key = links, pageKey{opened.Ref, opened.Page, files, shown.Texts.Language}
	if opened.Page < opened.PageCount {
		shown.Newer = opened.Page + 1
	}
	return nil
}

// explain sets what the document shows instead of a share, and returns the status.
func (h *Handlers) explain(w stdhttp.ResponseWriter, r *stdhttp.Request, err error, shown *document) int {
	problem := response.ProblemOf(err)
	if problem.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(problem.Retry))
	}
	shown.Shared = nil
	switch problem.Status {
	case stdhttp.StatusNotFound:
		shown.Heading, shown.Detail = shown.Texts.Missing, shown.Texts.MissingDetail
	case stdhttp.StatusTooManyRequests:
		shown.Heading, shown.Detail = shown.Texts.Limited, shown.Texts.LimitedDetail
	default:
		shown.Heading, shown.Detail = shown.Texts.Unavailable, shown.Texts.UnavailableDetail
		if r.Context().Err() == nil {
			h.Log.Error("the page of a share could not be shown", zap.String("request_id", exchange.RequestIDOf(r.Context())), zap.Error(err))
		}
	}
	return problem.Status
}

// render returns the document as HTML, from the cache if possible. Only a few are rendered at the same time, so that many
// readers do not delay other requests.
func (h *Handlers) render(ctx context.Context, shown *document) ([]byte, error) {
	if body, cached := h.pages.Get(shown.key); cached {
		return body, nil
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if body, cached := h.pages.Get(shown.key); cached { // rendered while this request waited
		return body, nil
	}
	shown.budget = markdown.NewBudget(ctx)
	shown.budget.AlertTitles = shown.Texts.Alerts
	var body bytes.Buffer
	if err := h.layout.template.Execute(&body, shown); err != nil {
		return nil, err
	}
	if !shown.budget.Late() { // otherwise another request can have more of the page
		h.pages.Put(shown.key, bytes.Clone(body.Bytes()), body.Len())
	}
	return body.Bytes(), nil
}

// linksOf returns the files of a page by their numbers, and a number that differs for any two sets of files.
func linksOf(token string, page *shares.Opened) (links map[int]link, set uint64) {
	links = make(map[int]link, len(page.Files))
	for _, file := range page.Files {
		links[file.N] = link{file, fmt.Sprintf("/shared/%s/files/%d", token, file.N)}
		set |= 1 << file.N
	}
	return links, set
}
