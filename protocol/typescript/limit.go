package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

const limitsHeading = `// The limits of the service that the app applies too. Generated from package protocol by "make generate"; do not edit. Lengths
// are in characters (code points).
`

// limits lists the limits that the app applies. Those without a constant are in the schemas of the OpenAPI document.
var limits = []struct {
	name, doc                 string
	value                     int64 // 0: that of the schema
	schema, property, keyword string
}{
	{name: "maxInput", doc: "Of one message.", value: protocol.MaxInputRunes},
	{name: "maxSteeringInput", doc: "Of one input that steers a turn or a research task.", value: protocol.MaxSteeringRunes},
	{name: "maxAttachments", doc: "Files of one message.", value: protocol.MaxAttachments},
	{name: "maxDraftFiles", doc: "Files of one draft.", schema: "PutDraftInputBody", property: "attachments", keyword: "maxItems"},
	{name: "maxTitle", doc: "Of the title of a conversation, and of the names of branches and projects.", value: protocol.MaxTitle},
	{name: "maxProvisionalTitle", doc: "Of a title that is made from a message.", value: protocol.MaxProvisionalTitle},
	{name: "maxQuery", doc: "Of the text that a search looks for.", value: protocol.MaxQueryRunes},
	{name: "maxInstructions", doc: "Of the instructions of an account or of a project.", value: protocol.MaxInstructions},
	{name: "maxPromptName", value: protocol.MaxPromptName},
	{name: "maxPromptDescription", value: protocol.MaxPromptDescription},
	{name: "maxPromptText", value: protocol.MaxPromptText},
	{name: "maxFilename", value: filetype.MaxName},
	{name: "maxFileStates", doc: "Files whose states are read at once.", schema: "StatesInputBody", property: "file_ids", keyword: "maxItems"},
	{name: "maxSharedFiles", doc: "Files of one share.", value: protocol.MaxSharedFiles},
	{name: "maxSharedArtifacts", doc: "Artifacts of one share.", schema: "CreateInputBody", property: "artifact_ids", keyword: "maxItems"},
	{name: "maxFeedbackReasons", value: protocol.MaxFeedbackReasons},
	{name: "maxFeedbackComment", value: protocol.MaxFeedbackComment},
	{name: "maxRejectionReason", doc: "Of the reason for the rejection of a call.", schema: "SteeringRequest", property: "reason", keyword: "maxLength"},
	{name: "maxResearchQuestion", value: protocol.MaxResearchQuestion},
	{name: "maxResearchStep", doc: "Of a question of a research plan.", value: protocol.MaxResearchStep},
	{name: "maxResearchFiles", doc: "Files of a research task.", schema: "CreateTaskInputBody", property: "file_ids", keyword: "maxItems"},
	{name: "maxImportSize", doc: "Bytes of one import.", value: protocol.MaxImportBytes},
	{name: "maxLocationAccuracy", doc: "Metres.", schema: "LocationInputBody", property: "accuracy_m", keyword: "maximum"},
	{name: "minPassword", value: protocol.MinPassword},
	{name: "maxDisplayName", value: protocol.MaxDisplayName},
	{name: "maxPasskeyName", value: protocol.MaxPasskeyName},
}

// document is what is read of the OpenAPI document: the keywords of the properties of the schemas.
type document struct {
	Components struct {
		Schemas map[string]struct {
			Properties map[string]map[string]any `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

// limit returns a number of the document, for example the maxItems of a property.
func (d *document) limit(schema, property, keyword string) (int64, error) {
	value, ok := d.Components.Schemas[schema].Properties[property][keyword].(float64)
	if !ok || value != math.Trunc(value) {
		return 0, fmt.Errorf("the OpenAPI document has no %s of %s in %s", keyword, property, schema)
	}
	return int64(value), nil
}

// limitConstants returns the content of the generated file. openapi is the OpenAPI document.
func limitConstants(openapi []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	var out bytes.Buffer
	out.WriteString(limitsHeading)
	for _, l := range limits {
		if l.schema != "" {
			value, err := d.limit(l.schema, l.property, l.keyword)
			if err != nil {
				return nil, err
			}
			l.value = value
		}
		out.WriteString("\n")
		if l.doc != "" {
			fmt.Fprintf(&out, "/** %s */\n", l.doc)
		}
		fmt.Fprintf(&out, "export const %s = %d;\n", l.name, l.value)
	}
	var largest protocol.ResearchAmounts
	for property, value := range map[string]*int64{"tokens": &largest.Tokens, "pages": &largest.Pages, "seconds": &largest.Seconds} {
		var err error
		if *value, err = d.limit("TaskBudgetInput", property, "maximum"); err != nil {
			return nil, err
		}
	}
	out.WriteString("\n/** The largest budget of a research task. */\nexport const maxResearchBudget = " + amounts(largest) + ";\n")
	out.WriteString("\n/** The budgets of the depths. */\nexport const researchBudgets = {\n")
	for _, depth := range []protocol.ResearchDepth{protocol.ResearchQuick, protocol.ResearchStandard, protocol.ResearchDeep} {
		fmt.Fprintf(&out, "  %s: %s,\n", depth, amounts(protocol.ResearchBudgets[depth]))
	}
	out.WriteString("};\n")
	return out.Bytes(), nil
}

func amounts(a protocol.ResearchAmounts) string {
	return fmt.Sprintf("{ tokens: %d, pages: %d, seconds: %d }", a.Tokens, a.Pages, a.Seconds)
}
