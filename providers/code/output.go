package code

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/protocol/foreign"
)

// output collects what code prints and makes. The code adds to it while another goroutine may take the result.
type output struct {
	mu        sync.Mutex
	text      strings.Builder // guarded by mu, as the others
	cut       int
	artifacts []Artifact
}

// print adds a text, up to the limit.
func (o *output) print(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := text
	if space := maxOutput - o.text.Len(); o.cut > 0 {
		kept = ""
	} else if len(text) > space {
		for space > 0 && !utf8.RuneStart(text[space]) {
			space--
		}
		kept = text[:space]
	}
	o.text.WriteString(kept)
	o.cut += len(text) - len(kept)
}

// add adds an artifact. It returns what is wrong, for the code; empty: nothing.
func (o *output) add(artifact *Artifact) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.artifacts) == MaxArtifacts:
		return fmt.Sprintf("A run makes at most %d tables and charts.", MaxArtifacts)
	case len(artifact.Content) > protocol.MaxArtifactBytes:
		return fmt.Sprintf("A table or a chart has at most %d MiB, and this one has %d bytes.", protocol.MaxArtifactBytes>>20, len(artifact.Content))
	}
	artifact.Title = title(artifact, len(o.artifacts)+1)
	o.artifacts = append(o.artifacts, *artifact)
	return ""
}

// title returns the title of the n-th artifact.
func title(artifact *Artifact, n int) string {
	title := foreign.OneLine(artifact.Title)
	switch {
	case title != "":
		return clip.Runes(title, protocol.MaxTitle)
	case artifact.Kind == protocol.ArtifactTable:
		return fmt.Sprintf("Table %d", n)
	}
	return fmt.Sprintf("Chart %d", n)
}

func (o *output) result() Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Result{Output: o.text.String(), Cut: o.cut, Artifacts: slices.Clone(o.artifacts)}
}
