package search

import (
	"context"
	"regexp"
	"strings"
	"time"

	"turnstone/persistence/search"
	"turnstone/protocol"
)

// filterIn matches a phrase, in which nothing is a filter, or a filter with its value: kind:file, in:"My project".
var filterIn = regexp.MustCompile(`(?i)"[^"]*"?|(^|\s)(from|in|kind|before|after):("[^"]+"|[^\s"]+)`)

var filterKinds = map[string]protocol.SearchKind{
	"conversation": protocol.SearchConversation, "chat": protocol.SearchConversation, "message": protocol.SearchMessage, "file": protocol.SearchFile,
	"artifact": protocol.SearchArtifact, "document": protocol.SearchArtifact, "task": protocol.SearchTask, "research": protocol.SearchTask,
}

var filterRoles = map[string]string{"me": "user", "user": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant"}

// takeFilters applies the filters in the text of a query, and returns the rest of it, and the filters. What only looks like a filter stays: from:alice.
// nothing reports that the filters exclude one another, or what the parameters of the request ask for.
func (h *Handlers) takeFilters(ctx context.Context, account protocol.AccountID, query *search.Query, text string) (rest string, filters []string, nothing bool, err error) {
	rest = filterIn.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, `"`) {
			return found
		}
		parts := filterIn.FindStringSubmatch(found)
		value := strings.Trim(parts[3], `"`)
		taken, fits, failed := false, true, error(nil)
		switch strings.ToLower(parts[2]) {
		case "in":
			taken, fits, failed = h.takePlace(ctx, account, query, value)
		case "from":
			role := filterRoles[strings.ToLower(value)]
			taken, fits = take(&query.Role, role)
		case "kind":
			kind := filterKinds[strings.TrimSuffix(strings.ToLower(value), "s")]
			taken, fits = take(&query.Kind, kind)
		case "after":
			if at, is := timeIn(value); is {
				taken = true
				if at.After(query.From) {
					query.From = at
				}
			}
		case "before":
			if at, is := timeIn(value); is {
				taken = true
				if query.To.IsZero() || at.Before(query.To) {
					query.To = at
				}
			}
		}
		if failed != nil {
			err = failed
		}
		nothing = nothing || !fits
		if taken {
			filters = append(filters, strings.TrimSpace(found))
			return " "
		}
		return found
	})
	conflicting := query.Role != "" && query.Kind != "" && query.Kind != protocol.SearchMessage
	return strings.TrimSpace(rest), filters, nothing || conflicting, err
}

// take sets a field to a value. taken: the value exists. fits: the field did not have another one.
func take[T comparable](field *T, value T) (taken, fits bool) {
	var none T
	if value == none {
		return false, true
	}
	fits = *field == none || *field == value
	*field = value
	return true, fits
}

// takePlace searches in the conversation or the project with an identifier, or in the project with a name.
func (h *Handlers) takePlace(ctx context.Context, account protocol.AccountID, query *search.Query, value string) (taken, fits bool, err error) {
	if id := new(protocol.ConversationID); id.UnmarshalText([]byte(value)) == nil {
		fits = query.ProjectID == nil && (query.ConversationID == nil || *query.ConversationID == *id)
		query.ConversationID = id
		return true, fits, nil
	}
	project, err := h.projects.Named(ctx, account, value)
	if err != nil || project == nil {
		return false, true, err
	}
	fits = query.ConversationID == nil && (query.ProjectID == nil || *query.ProjectID == *project)
	query.ProjectID = project
	return true, fits, nil
}

// timeIn reads a time, a day, a month or a year (UTC): its beginning.
func timeIn(text string) (at time.Time, is bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01", "2006"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
