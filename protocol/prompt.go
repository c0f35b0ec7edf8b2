package protocol

import (
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of prompts. The lengths are in characters.
const (
	MaxPrompts           = 1000 // of an account
	MaxPromptName        = 64
	MaxPromptDescription = 200
	MaxPromptText        = 16_000
)

// Prompt is a text that a user has saved, to insert it into messages.
type Prompt struct {
	PromptID    PromptID   `json:"prompt_id"`
	ProjectID   *ProjectID `json:"project_id" doc:"The project to which the prompt belongs. Null: it belongs to the account."`
	Name        string     `json:"name" doc:"What the user types after / to find the prompt. No other prompt of the same project, or of the account, has it, in upper or lower case."`
	Description string     `json:"description" doc:"What the prompt is for; may be empty."`
	Text        string     `json:"text" doc:"The text that is inserted. {{name}} and {{name:default}} are variables: the app asks for their values when it inserts the text. The service stores the text as it is."`
	Version     int64      `json:"version"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
}

// Address returns the path of the prompt.
func (p *Prompt) Address() string { return "/prompts/" + p.PromptID.String() }

// CurrentVersion returns the version of the prompt.
func (p *Prompt) CurrentVersion() int64 { return p.Version }

// PromptName returns the name of a prompt in its composed form, so that equal names are equal texts. valid is false unless it has 1
// to MaxPromptName letters, digits, hyphens and underscores, of which the first is a letter or a digit: names are typed.
func PromptName(text string) (name string, valid bool) {
	name = norm.NFC.String(text)
	if name == "" || utf8.RuneCountInString(name) > MaxPromptName {
		return name, false
	}
	for i, c := range name {
		if !(unicode.IsLetter(c) || unicode.IsDigit(c) || i > 0 && (unicode.IsMark(c) || c == '-' || c == '_')) {
			return name, false
		}
	}
	return name, true
}
