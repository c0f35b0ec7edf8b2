package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/protocol/recent"
	"turnstone/providers/outbound"
)

// Documents reads the texts of documents such as PDF. Package providers/extract implements it.
type Documents interface {
	// Extract reads a content. A content that cannot be read is a result, too.
	Extract(ctx context.Context, of io.Reader, mediaType string) (*protocol.Extraction, error)
}

// Local has pages that are not on the web.
type Local interface {
	// Page returns the page with an address; nil if there is none. known means that the address is not one of the web.
	Page(address *url.URL) (page *Page, known bool)
}

// What a node does at the same time, because of the memory.
const (
	maxPages  = 8                // pages that are fetched or parsed: each has up to 10 MiB
	maxParsed = 4                // pages that are parsed: a parsed page is much larger
	maxWait   = 30 * time.Second // for a slot to fetch a page; a fetch may take about as long
)

// Reader reads pages. Its methods may be called from any goroutine.
type Reader struct {
	client    *outbound.Client
	documents Documents
	local     Local                             // nil: none
	robots    *recent.Cache[string, robotsFile] // by server
	pages     *semaphore.Weighted
	parsed    *semaphore.Weighted
	wait      time.Duration // for a slot to fetch a page
}

// NewReader returns a reader. local may be nil.
func NewReader(client *outbound.Client, documents Documents, local Local) *Reader {
	return &Reader{
		client: client, documents: documents, local: local, robots: recent.New[string, robotsFile](maxRobotsCache, 0), pages: semaphore.NewWeighted(maxPages),
		parsed: semaphore.NewWeighted(maxParsed), wait: maxWait,
	}
}

var accepted = http.Header{"Accept": {"text/html, application/xhtml+xml, text/markdown, text/plain, application/pdf, */*;q=0.5"}}

// Read reads the page at an address. progress reports each step. An error that users may see is a *toolbox.Failure.
func (r *Reader) Read(ctx context.Context, address string, progress func(label string)) (*Page, error) {
	parsed, err := outbound.Parse(address)
	if err != nil {
		return nil, failure(err)
	}
	if r.local != nil {
		switch page, known := r.local.Page(parsed); {
		case page != nil:
			return page, nil
		case known:
			return nil, &toolbox.Failure{Code: "page_refused", Detail: "There is no page with this address."}
		}
	}
	progress("Asking " + parsed.Hostname() + " whether the page may be read")
	if err := r.mayRead(ctx, parsed); err != nil {
		return nil, failure(err)
	}
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.pages.Release(1)
	progress("Reading " + parsed.Hostname())
	response, err := r.client.Get(ctx, outbound.Request{
		Address: parsed.String(), Header: accepted, Redirect: func(to *url.URL) error { return r.mayRead(ctx, to) },
	})
	if err != nil {
		return nil, failure(err)
	}
	if err := refusal(response); err != nil {
		return nil, err
	}
	if err := r.parsed.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer r.parsed.Release(1)
	page, err := r.read(ctx, response)
	if err != nil {
		return nil, err
	}
	page.finish(response.Cut)
	return page, nil
}

// enter waits for a slot to fetch a page. The slot is kept until the page was parsed, because its body is in memory until then.
func (r *Reader) enter(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	switch err := r.pages.Acquire(waiting, 1); {
	case ctx.Err() != nil:
		if err == nil {
			r.pages.Release(1)
		}
		return ctx.Err()
	case err != nil:
		return &toolbox.Failure{Code: "busy", Detail: "Other pages are read at the moment, and no slot became free in time. Try again later."}
	}
	return nil
}

// failure returns an error of a request as one that users may see.
func failure(err error) error {
	var known *outbound.Error
	switch {
	case !errors.As(err, &known):
		return err
	case known.Blocked:
		return &toolbox.Failure{Code: "address_refused", Detail: known.Detail}
	}
	return &toolbox.Failure{Code: "page_unreachable", Detail: known.Detail}
}

// refusal returns the error of a response that is not the page.
func refusal(response *outbound.Response) error {
	if response.Status >= 200 && response.Status < 300 {
		return nil
	}
	what := fmt.Sprintf("The server answered with the status %d", response.Status)
	if name := http.StatusText(response.Status); name != "" {
		what += " (" + name + ")"
	}
	switch response.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		what += ": the page needs a sign-in, or the server refuses programs"
	case http.StatusNotFound, http.StatusGone:
		what += ": there is no such page"
	case http.StatusTooManyRequests:
		what += ": it allows no more requests at the moment"
	}
	return &toolbox.Failure{Code: "page_refused", Detail: what + "."}
}

// read reads a response by its media type.
func (r *Reader) read(ctx context.Context, response *outbound.Response) (*Page, error) {
	mediaType := mediaTypeOf(response)
	page := &Page{URL: response.URL.String(), Status: response.Status, MediaType: mediaType, Language: response.Header.Get("Content-Language")}
	switch {
	case mediaType == "text/html" || mediaType == "application/xhtml+xml":
		return page, page.readHTML(ctx, response)
	case filetype.KindOf(mediaType) == protocol.FileText, strings.HasSuffix(mediaType, "+json"), strings.HasSuffix(mediaType, "+xml"):
		page.Text = decoded(response.Body, response.Header.Get("Content-Type"), false)
		page.Title = nameOf(response.URL)
		return page, nil
	case filetype.KindOf(mediaType) == protocol.FileDocument:
		page.Title = nameOf(response.URL)
		return page, r.readDocument(ctx, page, response)
	}
	return nil, &toolbox.Failure{Code: "unsupported_type", Detail: fmt.Sprintf("The address has a file of the type %s, which has no text that can be read.", shortened(mediaType))}
}

// readDocument reads a document such as a PDF.
func (r *Reader) readDocument(ctx context.Context, page *Page, response *outbound.Response) error {
	if response.Cut {
		return &toolbox.Failure{Code: "too_large", Detail: "The document is larger than 10 MiB, so it was not read."}
	}
	x, err := r.documents.Extract(ctx, bytes.NewReader(response.Body), page.MediaType)
	if err != nil {
		return err
	}
	switch {
	case x.State == protocol.TextFailed && x.Reason == protocol.TextEncrypted:
		return &toolbox.Failure{Code: "encrypted", Detail: "The document is protected by a password, so it was not read."}
	case x.State == protocol.TextFailed:
		return &toolbox.Failure{Code: "unreadable", Detail: "The document is damaged or too complex, so it was not read."}
	}
	if x.State == protocol.TextNoText {
		return &toolbox.Failure{Code: "no_text", Detail: "The document has only pictures of pages, as a scan does, so it has no text."}
	}
	page.Text, page.Blocks = x.Text, x.Blocks
	if x.Truncated {
		page.note("The document is longer. This is its beginning.")
	}
	return nil
}

// nameOf returns the last segment of the path of an address, or its host.
func nameOf(address *url.URL) string {
	if name := address.Path[strings.LastIndexByte(address.Path, '/')+1:]; name != "" {
		return name
	}
	return address.Hostname()
}
