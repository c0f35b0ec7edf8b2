// Package tool contains the tools that the service itself offers to models. A tool is one .go file, one .md file that
// describes it to the model, and one line in All. The tools read and write only what is in the scope of the call: its files, and the
// artifacts of its conversation.
package tool

import "turnstone/actors/toolbox"

// All lists the tools.
func All(files Files, artifacts Artifacts) []toolbox.Tool {
	return []toolbox.Tool{Calculate{}, CurrentTime{}, SearchFiles{files}, ReadFile{files}, WriteArtifact{artifacts}, ReadArtifact{artifacts}}
}
