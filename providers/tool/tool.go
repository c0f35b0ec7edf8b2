// Package tool contains the tools that the service itself offers to models. A tool is one .go file, one .md file that
// describes it to the model, and one line in All. A tool reads and writes only what is in the scope of its call.
package tool

import "turnstone/actors/toolbox"

// Stores is what the tools read and write.
type Stores struct {
	Files     Files
	Artifacts Artifacts
	Projects  Projects
	Past      Past
	Locations Locations
	Research  Research
	Kept      KeptSources
	Web       *Web
	Code      *Code
}

// All lists the tools.
func All(s *Stores) []toolbox.Tool {
	return []toolbox.Tool{
		Calculate{},
		CurrentTime{},
		SearchFiles{s.Files},
		ReadFile{s.Files},
		WriteArtifact{s.Artifacts},
		ReadArtifact{s.Artifacts},
		WebSearch{s.Web},
		ReadPage{s.Web},
		SearchConversations{s.Past},
		ProjectContext{s.Projects, s.Files},
		Location{s.Locations},
		StartResearch{s.Research},
		ReadResearch{s.Kept},
		RunCode{s.Files, s.Artifacts, s.Code},
	}
}
