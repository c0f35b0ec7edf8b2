package verify

import (
	"maps"
	"slices"
)

// Write is one request that creates something, and the outcome that its client received.
type Write struct {
	What    string // names what the request creates; the repeats of a request have the same one
	ID      string // of what was created, if it was acknowledged; "": not checked
	Outcome Outcome
}

// CheckWrites compares writes with what is stored: the identifiers of what exists, by What. Whatever was acknowledged
// exists, under the identifier of its response, and all responses have the same one. Nothing exists twice. What was only
// refused does not exist.
func CheckWrites(writes []Write, stored map[string][]string) (found Findings) {
	all := map[string][]Write{}
	for _, w := range writes {
		all[w.What] = append(all[w.What], w)
	}
	for _, what := range slices.Sorted(maps.Keys(all)) {
		checkWrite(what, all[what], stored[what], &found)
	}
	return found
}

func checkWrite(what string, writes []Write, stored []string, found *Findings) {
	ids, had := map[string]bool{}, [Closed + 1]bool{}
	for _, w := range writes {
		had[w.Outcome] = true
		if w.Outcome == Acknowledged {
			ids[w.ID] = true
		}
	}
	if len(stored) > 1 {
		found.add(Doubled, "%s exists %d times: %v", what, len(stored), stored)
	}
	if len(ids) > 1 {
		found.add(NotIdempotent, "%s was acknowledged as %v", what, slices.Sorted(maps.Keys(ids)))
	}
	for id := range ids {
		if len(stored) == 0 || id != "" && !slices.Contains(stored, id) {
			found.add(Lost, "%s was acknowledged as %q; stored is %v", what, id, stored)
		}
	}
	if len(stored) > 0 && !had[Acknowledged] && !had[Unknown] {
		found.add(Untruthful, "%s was refused, never with an unknown outcome, and exists as %v", what, stored)
	}
}
