package imports_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/imports"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// stateUpdates is what every statement that changes an import does in every state: the trigger by which it moves an import that is in a
// state. Any other import stays as it is.
var stateUpdates = []struct {
	name  string
	sql   string
	ends  protocol.ImportState // the state that endSQL sets
	moves map[protocol.ImportState]protocol.ImportTrigger
}{
	{"cancel", imports.CancelSQL, "", map[protocol.ImportState]protocol.ImportTrigger{
		protocol.ImportReceiving: protocol.ImportCancel, protocol.ImportQueued: protocol.ImportCancel, protocol.ImportRunning: protocol.ImportCancel,
	}},
	{"received", imports.ReceivedSQL, "", map[protocol.ImportState]protocol.ImportTrigger{protocol.ImportReceiving: protocol.ImportReceived}},
	{"receive failed", imports.ReceiveFailedSQL, "", map[protocol.ImportState]protocol.ImportTrigger{protocol.ImportReceiving: protocol.ImportFails}},
	{"abandoned upload", imports.AbandonedUploadSQL, "", map[protocol.ImportState]protocol.ImportTrigger{protocol.ImportReceiving: protocol.ImportFails}},
	{"claim", imports.ClaimSQL, "", map[protocol.ImportState]protocol.ImportTrigger{
		protocol.ImportQueued: protocol.ImportRuns, protocol.ImportRunning: protocol.ImportContinue,
	}},
	{"end", imports.EndSQL, protocol.ImportCompleted, map[protocol.ImportState]protocol.ImportTrigger{protocol.ImportRunning: protocol.ImportEnds}},
	{"end with a failure", imports.EndSQL, protocol.ImportFailed, map[protocol.ImportState]protocol.ImportTrigger{protocol.ImportRunning: protocol.ImportFails}},
	{"receiving", imports.ReceivingSQL, "", nil},
	{"active", imports.ActiveSQL, "", nil},
	{"release", imports.ReleaseSQL, "", nil},
	{"swept", imports.SweptSQL, "", nil},
}

const (
	enterStateSQL = `update imports set state = $3, run = 1, active_at = '-infinity' where account_id = $1 and import_id = $2`
	stateSQL      = `select state from imports where account_id = $1 and import_id = $2`
)

func TestEveryStatementMovesOnlyImportsAsTheTableOfStatesAllows(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	w := &storetest.World{T: t, DB: db}
	account, id := pgtest.Account(t, db), protocol.NewImportID()
	_, err := db.DB.Exec(t.Context(), account, `insert into imports (account_id, import_id) values ($1, $2)`, account, id)
	w.Must(err)
	made := map[[2]string]bool{}
	for _, update := range stateUpdates {
		args := pgx.NamedArgs{
			"account": account, "import": id, "run": 1, "size": 1, "chunks": 1, "read": 1, "failure": nil, "source": nil, "report": "{}", "abandoned": "1 minute", "node": nil, "state": update.ends,
		}
		w.Must(db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
			for _, from := range protocol.ImportStates {
				var to protocol.ImportState
				_, failed := tx.Exec(ctx, enterStateSQL, account, id, from)
				w.Must(failed)
				_, failed = tx.Exec(ctx, update.sql, args)
				w.Must(failed)
				w.Must(tx.QueryRow(ctx, stateSQL, account, id).Scan(&to))
				want := from
				if trigger, moves := update.moves[from]; moves {
					want = next(t, from, trigger)
					made[[2]string{string(from), string(trigger)}] = true
				}
				if to != want {
					t.Errorf("%s: an import that was %s is %s, want %s", update.name, from, to, want)
				}
			}
			return nil
		}))
	}
	for _, tr := range protocol.ImportTransitions {
		if !made[[2]string{string(tr.From), string(tr.Trigger)}] {
			t.Errorf("no statement makes the transition %s of an import that is %s", tr.Trigger, tr.From)
		}
	}
}

// next returns the state of the table to which a trigger leads.
func next(t *testing.T, from protocol.ImportState, trigger protocol.ImportTrigger) protocol.ImportState {
	t.Helper()
	for _, tr := range protocol.ImportTransitions {
		if tr.From == from && tr.Trigger == trigger {
			return tr.To
		}
	}
	t.Fatalf("the table has no transition %s from %s", trigger, from)
	return ""
}

func TestTheListOfStatementsIsComplete(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found, want := 0, 6 // stateUpdates has endSQL twice, and four that set no state
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(source, "_test.go") {
			found += len(regexp.MustCompile(`update imports\s+set state =`).FindAll(text, -1))
		}
	}
	if found != want {
		t.Errorf("%d statements set the state of an import, want %d: name the new one in stateUpdates", found, want)
	}
}
