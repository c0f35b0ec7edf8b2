package main

import (
	"context"
	"fmt"

	"turnstone/cmd/turnstone/settings"
	"turnstone/providers/outbound"
	"turnstone/providers/tool"
	"turnstone/providers/web/corpus"
	"turnstone/providers/web/page"
	"turnstone/providers/web/search"
)

// userAgent is sent with requests for web pages. robots.txt files name the part before the slash.
const userAgent = "Turnstone/1.0"

// openWeb creates what the tools for the web use. The extractor and the limiter are open.
func (s *service) openWeb(context.Context) error {
	s.web = &tool.Web{Limits: s.limiter, SearchesPerDay: s.config.Limits.WebSearches, PagesPerDay: s.config.Limits.WebPages}
	if len(s.config.Web.Providers) == 0 {
		s.web.Unavailable = "The web cannot be searched, because no search provider is configured for this service."
		return nil
	}
	var engines search.Engines
	var bundled page.Local
	for _, name := range s.config.Web.Providers {
		switch name {
		case settings.SearXNG:
			engines = append(engines, search.NewSearXNG(s.config.Web.SearXNGURL, search.Options{}))
		case settings.Brave:
			engines = append(engines, search.NewBrave(s.config.Web.BraveKey, search.Options{}))
		case settings.Tavily:
			engines = append(engines, search.NewTavily(s.config.Web.TavilyKey, search.Options{}))
		case settings.Bundled:
			pages, err := corpus.New()
			if err != nil {
				return fmt.Errorf("the bundled corpus: %w", err)
			}
			engines, bundled = append(engines, pages), pages
		}
	}
	client := outbound.New(outbound.Config{
		Allowed: s.config.Web.Allow.Allowed, OwnHosts: []string{s.config.Service.BaseURL.Hostname()}, UserAgent: userAgent,
	})
	s.web.Searcher, s.web.Pages = engines, page.NewReader(client, s.extractor, bundled)
	return nil
}
