package search

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"time"

	"turnstone/protocol/clip"
	"turnstone/protocol/foreign"
)

// The limits of a result, in bytes.
const (
	maxTitle   = 300
	maxSnippet = 1000
	maxAddress = 2000
)

// cleaned returns results without those that have no address, and each page once.
func cleaned(results []Result, limit int) []Result {
	var list []Result
	seen := map[string]bool{}
	for _, r := range results {
		address, err := url.Parse(strings.TrimSpace(r.URL))
		if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Hostname() == "" || address.User != nil || len(r.URL) > maxAddress {
			continue
		}
		key := strings.ToLower(strings.TrimPrefix(address.Hostname(), "www.")) + strings.TrimSuffix(address.EscapedPath(), "/") + "?" + address.RawQuery
		if seen[key] {
			continue
		}
		seen[key] = true
		one := Result{Title: plain(r.Title, maxTitle), URL: address.String(), Snippet: plain(r.Snippet, maxSnippet), Date: dateOf(r.Date)}
		if one.Title == "" {
			one.Title = address.Hostname()
		}
		if list = append(list, one); len(list) == limit {
			break
		}
	}
	return list
}

var tag = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// plain returns a text without markup, on one line.
func plain(text string, most int) string {
	text = html.UnescapeString(tag.ReplaceAllString(text[:min(len(text), 4*most)], ""))
	text = foreign.OneLine(strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = clip.Bytes(text, most) + "…"
	}
	return text
}

var layouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly, time.RFC1123, time.RFC1123Z, "January 2, 2006", "Jan 2, 2006"}

// dateOf returns the day of a date; "" if it cannot be read.
func dateOf(text string) string {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	return ""
}
