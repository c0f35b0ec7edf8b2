package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/research"
	"turnstone/actors/research/evidence"
	"turnstone/actors/retry"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// Document is a source as a place reads it.
type Document struct {
	Title string
	URL   string // after redirects
	// Canonical, Author and DOI are what the document says about itself. Each may be empty.
	Canonical string
	Author    string
	DOI       string
	Text      string
	Blocks    []protocol.TextBlock
}

// Place is where a task looks for sources. Its methods may be called from any goroutine.
type Place interface {
	// Search returns the best sources for a query, at most limit; of files, only those that the step names, if it names any.
	Search(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) ([]researchlog.Candidate, error)
	// Read reads a source.
	Read(ctx context.Context, spec *researchlog.Spec, found *researchlog.Candidate) (*Document, error)
}

// Problem is why a place has no result: a sentence that users may see.
type Problem struct {
	Detail    string
	Retryable bool // it may pass soon
}

func (p *Problem) Error() string { return p.Detail }

// Worker implements research.Worker.
type Worker struct {
	Places map[protocol.ResearchSource]Place
	Model  *metering.Model
	Route  routing.Route
	Log    *zap.Logger
}

// How often, and for how long, a step is tried.
const (
	tries      = 6
	firstPause = time.Second
	maxPause   = 20 * time.Second
	stepTime   = 3 * time.Minute // for one try
)

// Run implements research.Worker.
func (w *Worker) Run(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (*researchlog.Result, error) {
	pauses := retry.Pauses{First: firstPause, Longest: maxPause}
	var used protocol.Usage
	for try := 1; ; try++ {
		result, err := w.try(ctx, spec, step)
		if result != nil {
			add(&used, &result.Usage)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			result.Usage = used
			return result, nil
		}
		detail, wait := explain(err)
		w.logFailure(spec, step, try, err)
		if wait < 0 || try == tries {
			return &researchlog.Result{Failed: detail, DailyLimit: usedUp(err), Usage: used}, nil
		}
		if err := pauses.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// try runs a step once. The result may have a usage even with an error.
func (w *Worker) try(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (*researchlog.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	switch step.Kind {
	case researchlog.StepSearch:
		found, err := w.Places[step.Source].Search(ctx, spec, step)
		return &researchlog.Result{Candidates: found[:min(len(found), step.Limit)]}, err
	case researchlog.StepRead:
		return w.read(ctx, spec, step)
	default:
		return w.ask(ctx, spec, step)
	}
}

// logFailure logs a failed try. Why a place has no result may contain an address or the name of a file, so it is not logged.
func (w *Worker) logFailure(spec *researchlog.Spec, step *researchlog.Step, try int, err error) {
	var problem *Problem
	if errors.As(err, &problem) {
		err = nil
	}
	w.Log.Info("a research step failed", zap.Stringer("task", spec.TaskID), zap.String("step", step.Key), zap.Int("attempt", try), zap.Error(err))
}

// usedUp reports whether a model was not called because the account has used its tokens of the day.
func usedUp(err error) bool {
	var failure *llm.Error
	return errors.As(err, &failure) && failure.Code == llm.CodeBudgetReached
}

// explain returns what an error says to the user, and how long to wait before the next try; negative: there is none.
func explain(err error) (detail string, wait time.Duration) {
	var problem *Problem
	var failure *llm.Error
	switch {
	case errors.As(err, &problem):
		if problem.Retryable {
			return problem.Detail, 0
		}
		return problem.Detail, -1
	case usedUp(err):
		return "The account has used its tokens of the day.", -1
	case errors.As(err, &failure) && failure.Retryable && !failure.Lasting:
		return "The model did not answer.", min(failure.RetryAfter, maxPause)
	case errors.As(err, &failure):
		return "The model refused the request.", -1
	case errors.Is(err, context.DeadlineExceeded):
		return "It took too long.", 0
	case protocol.CodeOf(err) == protocol.CodeUnavailable:
		return "A part of the service was unavailable.", 0
	}
	return "It could not be done.", -1
}

func add(sum, more *protocol.Usage) {
	sum.InputTokens += more.InputTokens
	sum.OutputTokens += more.OutputTokens
	sum.ReasoningTokens += more.ReasoningTokens
	sum.CachedInputTokens += more.CachedInputTokens
	sum.Estimated = sum.Estimated || more.Estimated
}

const (
	passagesBytes = 6 << 10 // of one source
	maxRead       = 1 << 20 // bytes of a source that are looked at
)

// read reads a source, and keeps the passages of it that are about the questions.
func (w *Worker) read(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (*researchlog.Result, error) {
	document, err := w.Places[step.Source].Read(ctx, spec, step.Found)
	if err != nil {
		return nil, err
	}
	text := clean(document.Text, maxRead)
	hash := sum(text)
	print, err := json.Marshal(evidence.FingerprintOf(text))
	if err != nil {
		return nil, err
	}
	page := &researchlog.Page{
		Title: clean(document.Title, 400), URL: document.URL, Canonical: clean(document.Canonical, 2000), Author: clean(document.Author, 200),
		DOI:    cmp.Or(evidence.DOI(document.URL), evidence.DOI(document.DOI)),
		SHA256: hash, Fingerprint: print, AccessedAt: protocol.Millis(time.Now()),
	}
	if page.DOI == "" {
		page.DOI = evidence.DOI(text[:min(len(text), 2000)])
	}
	for _, span := range choose(text, step.About) {
		page.Passages = append(page.Passages, researchlog.Passage{Text: text[span.Start:span.End], Locator: locator(text, document.Blocks, span.Start)})
	}
	return &researchlog.Result{Page: page, Pages: 1}, nil
}

var _ research.Worker = (*Worker)(nil)
