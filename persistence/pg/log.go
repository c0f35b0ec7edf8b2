package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// EventRow is a row of a log: the events First to Last, one per line.
type EventRow struct {
	First, Last int64
	Frames      []byte
}

// FramesAfter returns the events after a sequence. rows are in order and contain it or begin right after it. last is the sequence of the
// last event; after, if there is none.
func FramesAfter(rows []EventRow, after int64) (frames []byte, last int64) {
	last = after
	for _, row := range rows {
		frames = append(frames, protocol.SkipFrames(row.Frames, max(0, after-row.First+1))...)
		last = row.Last
	}
	return frames, last
}

// ErrStored means that a batch was stored before: the reply to its commit was lost.
var ErrStored = errors.New("the batch is stored already")

// Fenced returns why a statement with a fence has changed no row: ErrStored, or ownership.ErrFenced. storedSQL selects whether the epoch is
// that of the batch, and all of the batch is stored.
func Fenced(ctx context.Context, tx *Tx, storedSQL string, args pgx.NamedArgs) error {
	var stored bool
	err := tx.QueryRow(ctx, storedSQL, args).Scan(&stored)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("reading the position of a log: %w", err)
	case stored:
		return ErrStored
	}
	return ownership.ErrFenced
}
