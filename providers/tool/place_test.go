package tool

import (
	"context"
	"errors"
	"testing"

	"turnstone/actors/research/work"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/providers/web/page"
)

// readerFunc is a reader of pages.
type readerFunc func() (*page.Page, error)

func (r readerFunc) Read(context.Context, string, func(string)) (*page.Page, error) { return r() }

func readForTask(t *testing.T, pages PageReader) (*work.Document, error) {
	t.Helper()
	places := Places(&Web{Pages: pages}, nil, nil, nil)
	return places[protocol.ResearchWeb].Read(t.Context(), &researchlog.Spec{AccountID: protocol.NewAccountID()}, &researchlog.Candidate{URL: "https://a.example/"})
}

func TestATaskGetsWhatAPageSaysAboutItsWork(t *testing.T) {
	read, err := readForTask(t, readerFunc(func() (*page.Page, error) {
		return &page.Page{URL: "https://a.example/b", Canonical: "https://a.example/c", Author: "Ada Mole", DOI: "10.5555/7", Text: "Text", Words: 1}, nil
	}))
	if err != nil || read.URL != "https://a.example/b" || read.Canonical != "https://a.example/c" || read.Author != "Ada Mole" || read.DOI != "10.5555/7" {
		t.Errorf("%+v, %v", read, err)
	}
}

// TestAPageIsReadAgainAfterAFailureOfTheService checks that a source is not given up because the node was busy.
func TestAPageIsReadAgainAfterAFailureOfTheService(t *testing.T) {
	for code, again := range map[protocol.ToolErrorCode]bool{"busy": true, "unavailable": true, "timeout": true, "search_failed": true, "page_refused": false, "page_unreachable": false, "daily_limit": false} {
		_, err := readForTask(t, readerFunc(func() (*page.Page, error) { return nil, &toolbox.Failure{Code: code, Detail: "It failed."} }))
		var problem *work.Problem
		if !errors.As(err, &problem) || problem.Retryable != again {
			t.Errorf("%s: %+v", code, err)
		}
	}
}
