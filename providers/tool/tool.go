// Package tool contains the tools that the service itself offers to models. A tool is one .go file, one .md file that
// describes it to the model, and one line in All. A tool reads nothing outside of the scope of its call.
package tool

import "turnstone/actors/toolbox"

// All lists the tools.
func All(files Files, web *Web) []toolbox.Tool {
	return []toolbox.Tool{Calculate{}, CurrentTime{}, SearchFiles{files}, ReadFile{files}, WebSearch{web}, ReadPage{web}}
}
