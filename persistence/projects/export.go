package projects

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/accounts"
	"turnstone/persistence/exports/archive"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// exportedProject is an item of projects.json.
type exportedProject struct {
	protocol.Project
	Settings *protocol.ProjectSettings `json:"settings"`
}

// exportedInstructions is an item of instructions.json: one version of the instructions of a project.
type exportedInstructions struct {
	ProjectID protocol.ProjectID `json:"project_id"`
	accounts.ExportedVersion
}

const exportedInstructionsSQL = `
	select i.project_id, i.version, i.content, i.created_at
	from project_instructions i
	join projects p using (account_id, project_id)
	where i.account_id = @account and (i.project_id, i.version) > (@project, @version) and p.state <> 'deleted'
	order by i.project_id, i.version
	limit @limit`

// ExportSections returns what an export has of projects: those that are not deleted, and every version of their instructions. A deleted
// project hides all that is in it.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{
		archive.Pages("projects", "projects.json", "projects", s.exportedProjects),
		archive.Pages("instructions", "instructions.json", "instructions", func(ctx context.Context, account protocol.AccountID) func() ([]exportedInstructions, bool, error) {
			var after exportedInstructions
			return func() (found []exportedInstructions, more bool, err error) {
				found, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[exportedInstructions], exportedInstructionsSQL,
					pgx.NamedArgs{"account": account, "project": after.ProjectID, "version": after.Version, "limit": accounts.InstructionsPage})
				if len(found) > 0 {
					after = found[len(found)-1]
				}
				return found, len(found) == accounts.InstructionsPage, err
			}
		}),
	}
}

func (s *Store) exportedProjects(ctx context.Context, account protocol.AccountID) func() ([]exportedProject, bool, error) {
	var after *protocol.ProjectID
	return func() (found []exportedProject, more bool, err error) {
		read, next, err := s.ListProjects(ctx, account, "", after, archive.Page)
		if err != nil {
			return nil, false, err
		}
		after = next
		for i := range read {
			if read[i].State == protocol.ProjectDeleted {
				continue
			}
			settings, err := s.Settings(ctx, account, read[i].ProjectID)
			if protocol.CodeOf(err) == protocol.CodeNotFound { // erased since it was listed
				continue
			}
			if err != nil {
				return nil, false, err
			}
			found = append(found, exportedProject{read[i], settings})
		}
		return found, next != nil, nil
	}
}
