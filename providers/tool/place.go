package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"turnstone/actors/research/work"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/turnlog"
	"turnstone/providers/outbound"
)

// Consents reads consents. Package persistence/memory implements it.
type Consents interface {
	Granted(ctx context.Context, account protocol.AccountID) ([]protocol.MemorySource, error)
}

// PastReader reads other conversations. Package persistence/search implements it.
type PastReader interface {
	Past
	// ReadPast reads the messages around one of another conversation, or with nil its first ones. The error is a
	// *turnlog.Refusal or protocol.CodeNotFound if the conversation of the scope may not read it.
	ReadPast(ctx context.Context, scope turnlog.Scope, conversation protocol.ConversationID, message *protocol.MessageID) (title, text string, err error)
}

// Places returns the places that research tasks search.
func Places(web *Web, files Files, consents Consents, past PastReader) map[protocol.ResearchSource]work.Place {
	return map[protocol.ResearchSource]work.Place{
		protocol.ResearchWeb:           &webPlace{web: web, hosts: map[string]*rate.Limiter{}},
		protocol.ResearchFiles:         filePlace{files, consents},
		protocol.ResearchConversations: pastPlace{past},
	}
}

// webPlace searches the web, and reads its pages.
type webPlace struct {
	web   *Web
	mu    sync.Mutex
	hosts map[string]*rate.Limiter // guarded by mu
}

const (
	hostInterval = time.Second // between two pages of one host
	maxHosts     = 2000
)

// limiter returns the limiter of a host. It forgets all hosts when there are too many.
func (p *webPlace) limiter(host string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts[host] == nil {
		if len(p.hosts) >= maxHosts {
			clear(p.hosts)
		}
		p.hosts[host] = rate.NewLimiter(rate.Every(hostInterval), 2)
	}
	return p.hosts[host]
}

func noLabel(string) {}

// Search implements work.Place.
func (p *webPlace) Search(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (found []researchlog.Candidate, err error) {
	if err := p.web.begin(ctx, callOf(spec), "web_searches", "web searches", p.web.SearchesPerDay); err != nil {
		return nil, problem(err)
	}
	query := []rune(foreign.Clean(step.About[0]))
	results, err := p.web.Searcher.Search(ctx, string(query[:min(len(query), maxQuery)]), min(step.Limit, maxResults), noLabel)
	if err != nil {
		return nil, problem(err)
	}
	for _, r := range results.Results {
		found = append(found, researchlog.Candidate{Title: foreign.Clean(cmp.Or(r.Title, r.URL)), URL: r.URL, Snippet: r.Snippet})
	}
	return found, nil
}

// Read implements work.Place.
func (p *webPlace) Read(ctx context.Context, spec *researchlog.Spec, found *researchlog.Candidate) (*work.Document, error) {
	if address, err := outbound.Parse(found.URL); err == nil {
		if err := p.limiter(address.Hostname()).Wait(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.web.begin(ctx, callOf(spec), "web_pages", "web pages", p.web.PagesPerDay); err != nil {
		return nil, problem(err)
	}
	read, err := p.web.Pages.Read(ctx, found.URL, noLabel)
	if err != nil {
		return nil, problem(err)
	}
	if read.Words == 0 {
		return nil, &work.Problem{Detail: cmp.Or(strings.Join(read.Notes, " "), "The page has no text.")}
	}
	return &work.Document{
		Title: cmp.Or(read.Title, found.Title), URL: read.URL, Canonical: read.Canonical, Author: read.Author, DOI: read.DOI, Text: read.Text, Blocks: read.Blocks,
	}, nil
}

// callOf returns a call for the limits of the tools, which count tasks and turns together.
func callOf(spec *researchlog.Spec) *toolbox.Call {
	return &toolbox.Call{Scope: scopeOf(spec)}
}

func scopeOf(spec *researchlog.Spec) turnlog.Scope {
	return turnlog.Scope{AccountID: spec.AccountID, ConversationID: spec.ConversationID, ProjectID: spec.ProjectID}
}

// passing are the codes of failures that may pass soon: the service or the search engine, and no page, is the reason.
var passing = []protocol.ToolErrorCode{"unavailable", "timeout", "busy", "search_failed"}

// problem returns an error of a tool as one of a place.
func problem(err error) error {
	var failure *toolbox.Failure
	if !errors.As(err, &failure) {
		return err
	}
	return &work.Problem{Detail: failure.Detail, Retryable: slices.Contains(passing, failure.Code)}
}

// filePlace searches files of the account.
type filePlace struct {
	files    Files
	consents Consents
}

// Search implements work.Place. Files that the task names are all candidates, whatever is asked.
func (p filePlace) Search(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (found []researchlog.Candidate, err error) {
	for _, id := range step.Files {
		head, err := p.files.ScopedFileHead(ctx, scopeOf(spec), id)
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		found = append(found, researchlog.Candidate{Title: head.Filename, FileID: &id})
	}
	if len(step.Files) > 0 {
		return found, nil
	}
	if err := p.check(ctx, spec); err != nil {
		return nil, err
	}
	results, err := SearchFiles{p.files}.find(ctx, scopeOf(spec), step.About[0])
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		found = append(found, researchlog.Candidate{Title: r.Title, FileID: r.FileID, Snippet: r.Snippet.Text})
	}
	return found, nil
}

// check returns an error unless the account consents to its files at the moment, or has named them.
func (p filePlace) check(ctx context.Context, spec *researchlog.Spec) error {
	granted, err := p.consents.Granted(ctx, spec.AccountID)
	if err == nil && len(spec.FileIDs) == 0 && !slices.Contains(granted, protocol.SourceFiles) {
		return &work.Problem{Detail: "The consent to the files of the account was revoked."}
	}
	return err
}

// Read implements work.Place.
func (p filePlace) Read(ctx context.Context, spec *researchlog.Spec, found *researchlog.Candidate) (*work.Document, error) {
	if err := p.check(ctx, spec); err != nil {
		return nil, err
	}
	head, err := readable(ctx, p.files, scopeOf(spec), *found.FileID)
	if err != nil {
		return nil, problem(err)
	}
	text, blocks, err := p.files.FileContent(ctx, spec.AccountID, head.FileID)
	if err != nil {
		return nil, err
	}
	return &work.Document{Title: head.Filename, Text: text, Blocks: blocks}, nil
}

// pastPlace searches other conversations of the account.
type pastPlace struct{ past PastReader }

// Search implements work.Place. While nothing is found, it leaves out the shortest word, as the search of files does.
func (p pastPlace) Search(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (found []researchlog.Candidate, err error) {
	words := strings.Fields(step.About[0])
	for range maxTries {
		text := []rune(strings.Join(words, " "))
		page, err := p.past.FindPast(ctx, &turnlog.PastQuery{
			Scope: scopeOf(spec), Text: string(text[:min(len(text), protocol.MaxQueryRunes)]), Limit: step.Limit,
		})
		if err != nil {
			return nil, refusal(err)
		}
		for i := range page.Found {
			f := &page.Found[i]
			found = append(found, researchlog.Candidate{Title: f.Title, ConversationID: f.ConversationID, MessageID: f.MessageID, Snippet: f.Snippet.Text})
		}
		if len(found) > 0 || len(words) == 1 {
			return found, nil
		}
		words = withoutShortest(words)
	}
	return nil, nil
}

// Read implements work.Place.
func (p pastPlace) Read(ctx context.Context, spec *researchlog.Spec, found *researchlog.Candidate) (*work.Document, error) {
	title, text, err := p.past.ReadPast(ctx, scopeOf(spec), *found.ConversationID, found.MessageID)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil, &work.Problem{Detail: "The conversation was deleted, or may not be read any more."}
	}
	if err != nil {
		return nil, refusal(err)
	}
	return &work.Document{Title: title, Text: text}, nil
}

// refusal returns why other conversations may not be read as the error of a place.
func refusal(err error) error {
	var refused *turnlog.Refusal
	if errors.As(err, &refused) {
		return &work.Problem{Detail: refused.Detail}
	}
	return fmt.Errorf("reading other conversations: %w", err)
}
