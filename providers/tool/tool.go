// Package tool contains the tools that the service itself offers to models. A tool is one .go file, one .md file that
// describes it to the model, and one line in All. The tools are harmless: they read no account data and change nothing.
package tool

import "turnstone/actors"

// All lists the tools.
func All() []actors.Tool {
	return []actors.Tool{Calculate{}, CurrentTime{}}
}
