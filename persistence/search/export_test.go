package search

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// SetFewRows changes how many rows of a project make it a large one.
func (s *Store) SetFewRows(rows int) { s.few = rows }

// Explain runs the statement of the first window of an account, or of a project, as the role of the service, with a generic
// plan or one for its values, and returns the plan and the number of pages that it has read.
func (s *Store) Explain(ctx context.Context, account protocol.AccountID, project *protocol.ProjectID, text string, generic bool) (plan string, pages int, err error) {
	mode := "force_custom_plan"
	if generic {
		mode = "force_generic_plan"
	}
	f := s.finder(account, &Query{Text: text, ProjectID: project})
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		sql, args, err := f.windowArgs(Position{Kind: protocol.SearchMessage}).RewriteQuery(ctx, nil, f.windowSQL(protocol.SearchMessage), nil)
		if err != nil {
			return err
		}
		places := make([]string, len(args))
		for i, arg := range args {
			places[i] = fmt.Sprintf("$%d", i+1)
			switch id := arg.(type) { // the simple protocol does not know the types of parameters
			case protocol.AccountID:
				args[i] = pg.UUIDText(id)
			case *protocol.ProjectID:
				args[i] = pg.UUIDText(*id)
			case *protocol.ConversationID:
				args[i] = nil
			case [16]byte:
				args[i] = pg.UUIDText(id)
			}
		}
		if _, err := tx.Exec(ctx, "select set_config('plan_cache_mode', $1, true)", mode); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "prepare explained as "+sql); err != nil {
			return err
		}
		explain := "explain (analyze, buffers, timing off, format json) execute explained(" + strings.Join(places, ", ") + ")"
		rows, err := tx.Query(ctx, explain, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
		if err != nil {
			return err
		}
		if plan, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "deallocate explained")
		return err
	})
	if err != nil {
		return "", 0, err
	}
	var explained []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	err = json.Unmarshal([]byte(plan), &explained)
	return plan, explained[0].Plan.Hit + explained[0].Plan.Read, err
}

// TakeLongSlot takes a slot for long texts, if one is free.
func (s *Store) TakeLongSlot() (taken bool, release func()) {
	select {
	case s.longTexts <- struct{}{}:
		return true, func() { <-s.longTexts }
	default:
		return false, nil
	}
}

// Allowed is the check of FindPast after its search.
func (s *Store) Allowed(ctx context.Context, q *turnlog.PastQuery, found []protocol.SearchResult) ([]protocol.SearchResult, error) {
	return s.allowed(ctx, q, found)
}
