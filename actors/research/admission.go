package research

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
)

// Consents reads consents. Package persistence/memory implements it.
type Consents interface {
	Granted(ctx context.Context, account protocol.AccountID) ([]protocol.MemorySource, error)
}

// Files reads files. Package persistence/files implements it.
type Files interface {
	Files(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) (map[protocol.FileID]*protocol.File, error)
}

// Conversations reads conversations. Package persistence/conversations implements it.
type Conversations interface {
	Conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error)
}

// Settings reads the settings of accounts. Package persistence/accounts implements it.
type Settings interface {
	Settings(ctx context.Context, account protocol.AccountID) (*protocol.Settings, error)
}

// Budget limits the model tokens that an account may use in a day. Package persistence/limits implements it.
type Budget interface {
	// CheckUsed returns protocol.CodeBudgetReached when all of them are used.
	CheckUsed(ctx context.Context, account protocol.AccountID) error
}

// Admission decides whether a task may start, and what it may search. Its method may be called from any goroutine.
type Admission struct {
	Consents      Consents
	Files         Files
	Conversations Conversations
	Settings      Settings
	Budget        Budget                             // nil: no limit
	Unavailable   map[protocol.ResearchSource]string // why a place cannot be searched, a sentence
}

// Admit checks the specification of a new task, and completes it. Before, Sources has the places that were asked for; if there are
// none, the web is searched. The errors are
// protocol.CodeNotFound for the conversation or a file, protocol.CodeSourceUnavailable, protocol.CodeBudgetReached, and a validation
// error for the question or the sources.
func (a *Admission) Admit(ctx context.Context, spec *researchlog.Spec) error {
	conversation, err := a.Conversations.Conversation(ctx, spec.AccountID, spec.ConversationID)
	if err != nil {
		return err
	}
	spec.ProjectID = conversation.ProjectID
	spec.Question = strings.TrimSpace(foreign.Clean(spec.Question))
	if n := utf8.RuneCountInString(spec.Question); n == 0 || n > protocol.MaxResearchQuestion {
		return protocol.Invalid("body.question", "must have 1 to 4,000 characters")
	}
	if err := a.choosePlaces(ctx, spec, conversation.Temporary); err != nil {
		return err
	}
	if err := a.checkFiles(ctx, spec); err != nil {
		return err
	}
	settings, err := a.Settings.Settings(ctx, spec.AccountID)
	if err != nil {
		return err
	}
	spec.Language = settings.Language
	if a.Budget == nil {
		return nil
	}
	return a.Budget.CheckUsed(ctx, spec.AccountID)
}

// choosePlaces checks the places that a task is to search, and the consents that they need.
func (a *Admission) choosePlaces(ctx context.Context, spec *researchlog.Spec, temporary bool) error {
	wanted := spec.Sources
	if len(wanted) == 0 {
		wanted = []protocol.ResearchSource{protocol.ResearchWeb}
	}
	if slices.Contains(wanted, protocol.ResearchConnectors) {
		return protocol.Invalid("body.sources", "names connectors, and this service has none that a task can search. Leave it out.")
	}
	if len(spec.FileIDs) > 0 {
		wanted = append(slices.Clone(wanted), protocol.ResearchFiles)
	}
	spec.Sources = nil
	for _, place := range protocol.ResearchSources { // in the order in which they are searched, each once
		if slices.Contains(wanted, place) {
			spec.Sources = append(spec.Sources, place)
		}
	}
	granted, err := a.Consents.Granted(ctx, spec.AccountID)
	if err != nil {
		return err
	}
	for _, place := range spec.Sources {
		if reason := a.Unavailable[place]; reason != "" {
			return &protocol.Error{Code: protocol.CodeSourceUnavailable, Detail: reason, RetryAfter: 60}
		}
		consent := protocol.MemorySource(place) // the names are the same
		free := place == protocol.ResearchWeb || place == protocol.ResearchFiles && len(spec.FileIDs) > 0
		if !free && (temporary || !slices.Contains(granted, consent)) {
			return protocol.Invalid("body.sources", "names "+string(place)+", to which the account has not consented. Grant the consent in the settings, or leave it out.")
		}
	}
	return nil
}

// checkFiles returns protocol.CodeNotFound unless the library of the account has the files that a task names.
func (a *Admission) checkFiles(ctx context.Context, spec *researchlog.Spec) error {
	if len(spec.FileIDs) == 0 {
		return nil
	}
	found, err := a.Files.Files(ctx, spec.AccountID, spec.FileIDs)
	if err != nil {
		return err
	}
	for _, id := range spec.FileIDs {
		if file := found[id]; file == nil || file.DeletedAt != nil {
			return protocol.Errorf(protocol.CodeNotFound, "file_ids names a file that does not exist.")
		}
	}
	return nil
}
