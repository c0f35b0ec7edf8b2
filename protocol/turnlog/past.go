package turnlog

import (
	"time"

	"turnstone/protocol"
)

// PastQuery is a search of a call of a tool in the other conversations of the account.
type PastQuery struct {
	Scope
	Text     string
	From, To time.Time // when what is found was created, without To; zero: no limit
	After    string    // Next of the page before; empty: the first page
	Limit    int
}

// PastPage is a page of the results of a PastQuery.
type PastPage struct {
	Found []protocol.SearchResult // of the kinds conversation and message
	Next  string                  // from where the search continues; empty: there is nothing more
}

// The reasons why other conversations, or the location, are not read.
const (
	RefusedConsent   protocol.ToolErrorCode = "consent_required"
	RefusedTemporary protocol.ToolErrorCode = "temporary_conversation"
)
