package search

import (
	"bytes"
	"cmp"
	"time"

	"turnstone/protocol"
)

// Position is a position in the results: with the words themselves or with other forms of them, of one kind, in one window, after one
// result.
type Position struct {
	Kind   protocol.SearchKind `json:"k"`
	Loose  bool                `json:"l,omitempty"` // all texts with the words themselves were returned: what follows has other forms of them
	Before *Place              `json:"b,omitempty"` // the window starts before it; nil: at the newest object
	Score  int                 `json:"s,omitempty"`
	After  *Place              `json:"a,omitempty"` // the last result that was returned; nil: none of this window
}

// Place orders the objects of a kind by their age.
type Place struct {
	At time.Time `json:"t"`
	ID [16]byte  `json:"i"`
}

func (p Place) compare(other Place) int {
	return cmp.Or(p.At.Compare(other.At), bytes.Compare(p.ID[:], other.ID[:]))
}
