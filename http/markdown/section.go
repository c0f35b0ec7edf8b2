package markdown

import (
	"regexp"
	"strings"

	"turnstone/protocol"
)

var (
	// sectionLine starts with a tag of a section that can be opened. Around the tags that sectionEdges finds, Markdown starts
	// anew, which takes a blank line.
	sectionLine  = regexp.MustCompile(`(?i)^ {0,3}</?(?:details|summary)>`)
	sectionEdges = regexp.MustCompile(`(?i)</summary>|</details>`)
)

// separateSections puts blank lines around the content of sections that can be opened: without them it would be HTML.
func separateSections(source string) string {
	if !strings.Contains(source, "</") {
		return source
	}
	var out strings.Builder
	fence := "" // of the code in which the line is
	for line := range strings.Lines(source) {
		rest := strings.TrimLeft(line, " ")
		run := rest[:protocol.FenceRun(rest)]
		switch {
		case fence != "":
			if strings.HasPrefix(run, fence) && strings.TrimSpace(rest) == run {
				fence = ""
			}
		case len(run) >= 3 && len(line)-len(rest) <= 3:
			fence = run
		case sectionLine.MatchString(line):
			anew := "\n\n" + line[:len(line)-len(rest)]
			line = sectionEdges.ReplaceAllStringFunc(line, func(tag string) string {
				if strings.EqualFold(tag, "</details>") {
					return anew + tag + anew
				}
				return tag + anew
			})
		}
		out.WriteString(line)
	}
	return out.String()
}
