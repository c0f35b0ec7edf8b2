package files_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const textInStateSQL = `
	insert into file_texts (account_id, file_id, state, reason)
	values ($1, $2, $3, case when $3 in ('failed', 'no_text') then 'damaged' end)`

func TestATextMovesOnlyAsTheTableOfStatesAllows(t *testing.T) {
	s := newShelf(t)
	made := 0
	for _, from := range protocol.TextStates {
		for _, read := range []protocol.TextState{protocol.TextDone, protocol.TextNone, protocol.TextNoText, protocol.TextFailed} {
			file := s.addFile("a.pdf", "document")
			_, err := s.DB.DB.Exec(t.Context(), s.Account, textInStateSQL, s.Account, file, from)
			s.Must(err)
			x := &protocol.Extraction{State: read}
			if read == protocol.TextNoText || read == protocol.TextFailed {
				x.Reason = protocol.TextDamaged
			}
			s.Must(s.DB.FileTexts.StoreText(t.Context(), s.Account, file, x))
			to, err := pg.Row(t.Context(), s.DB.DB, s.Account, pgx.RowTo[protocol.TextState],
				`select state from file_texts where account_id = $1 and file_id = $2`, s.Account, file)
			s.Must(err)
			want := from
			if slices.ContainsFunc(protocol.TextTransitions, func(row protocol.Transition[protocol.TextState, protocol.TextTrigger]) bool {
				return row.From == from && row.To == read
			}) {
				want = read
				made++
			}
			if to != want {
				t.Errorf("a text that was %s is %s when its content was read as %s, want %s", from, to, read, want)
			}
		}
	}
	if made != len(protocol.TextTransitions) {
		t.Errorf("%d transitions were made, the table has %d", made, len(protocol.TextTransitions))
	}
	if _, err := s.DB.DB.Exec(t.Context(), s.Account, textInStateSQL, s.Account, s.addFile("b.pdf", "document"), "read"); err == nil {
		t.Error("the schema allows a state that is not in the table")
	}
}
