// Package tool contains the tools that the service itself offers to models. A tool is one .go file, one .md file that
// describes it to the model, and one line in All. A tool reads and writes only what is in the scope of its call.
package tool

import "turnstone/actors/toolbox"

// All lists the tools.
func All(files Files, artifacts Artifacts, web *Web) []toolbox.Tool {
	return []toolbox.Tool{
		Calculate{}, CurrentTime{}, SearchFiles{files}, ReadFile{files}, WriteArtifact{artifacts}, ReadArtifact{artifacts}, WebSearch{web}, ReadPage{web},
	}
}
