package journal

import (
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// journalArrays encodes the arrays itself. pgx decodes them to the original values.
func TestJournalArraysAreDecodedByPgx(t *testing.T) {
	first := &journalEntry{Append: &turnlog.Append{
		AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), Owner: protocol.NewNodeID(), Epoch: 1 << 30, First: 1 << 40, Last: 1<<40 + 2,
		Frames: []byte{0, 1, 0xff}, State: protocol.TurnRunning, Accepts: true,
		Records: []turnlog.Record{{Kind: "step", Key: "", Sequence: 7, Body: []byte(`{"é":1}`)}},
	}}
	second := &journalEntry{Append: &turnlog.Append{AccountID: protocol.NewAccountID(), Epoch: -1, Frames: []byte{}}}
	var arrays journalArrays
	for range 2 { // the second call reuses the memory of the first
		if !arrays.fill([]*journalEntry{first, second}) {
			t.Error("fill reports no records")
		}
	}
	for column, want := range map[int]any{
		appendAccount:   [][16]byte{first.AccountID, second.AccountID},
		appendTurn:      [][16]byte{first.TurnID, {}},
		appendOwner:     [][16]byte{first.Owner, {}},
		appendEpoch:     []int32{1 << 30, -1},
		appendFirst:     []int64{1 << 40, 0},
		appendLast:      []int64{1<<40 + 2, 0},
		appendFrames:    [][]byte{{0, 1, 0xff}, {}},
		appendState:     []string{"running", ""},
		appendAccepting: []bool{true, false},
		recordAccount:   [][16]byte{first.AccountID},
		recordTurn:      [][16]byte{first.TurnID},
		recordKind:      []string{"step"},
		recordKey:       []string{""},
		recordSequence:  []int64{7},
		recordBody:      []string{`{"é":1}`},
	} {
		types := pgtype.NewMap()
		element, _ := types.TypeForOID(journalTypes[column])
		array, ok := types.TypeForName("_" + element.Name)
		if !ok {
			t.Fatalf("no array of %s", element.Name)
		}
		got := reflect.New(reflect.TypeOf(want))
		if err := types.Scan(array.OID, pgtype.BinaryFormatCode, arrays.columns[column], got.Interface()); err != nil {
			t.Fatalf("column %d: %v", column, err)
		}
		if !reflect.DeepEqual(got.Elem().Interface(), want) {
			t.Errorf("column %d: %v, want %v", column, got.Elem(), want)
		}
	}
	if arrays.fill([]*journalEntry{second}) {
		t.Error("fill reports records")
	}
}
