// Package tool holds the tools that the service itself offers to models. A tool is one .go file, one .md file that
// describes it to the model, and one line in All. They are harmless: they read nothing of the account and change nothing.
package tool

import "turnstone/actors"

// All lists the tools.
func All() []actors.Tool {
	return []actors.Tool{Calculate{}, CurrentTime{}}
}
