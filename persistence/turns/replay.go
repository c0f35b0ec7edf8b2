package turns

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

const (
	// replayBlock is the number of bytes of a log that are compressed together, and so also the number that are
	// decompressed to read one event.
	replayBlock = 256 << 10
	// replayWindow is how far back the compression of a log searches, in bytes: lines repeat the lines near them.
	replayWindow = 256 << 10
	// maxLog limits the decompressed size of a row.
	maxLog = 1 << 30
)

// encoder and decoder are safe for concurrent use.
var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(replayWindow)))
	decoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxLog)))
)

// must returns made. It panics on an error, which only invalid options can cause; here they are constants.
func must[T any](made T, err error) T {
	if err != nil {
		panic("persistence: " + err.Error())
	}
	return made
}

// compress compresses a log at the fastest level, because it delays the end of every turn. The lines of one turn are so
// similar that the best level saves little more.
func compress(log []byte) []byte { return encoder.EncodeAll(log, make([]byte, 0, len(log)/8)) }

// decompress returns the bytes of a log; size is their number.
func decompress(compressed []byte, size int) ([]byte, error) {
	frames, err := decoder.DecodeAll(compressed, make([]byte, 0, size))
	if err == nil && len(frames) != size {
		err = fmt.Errorf("%d bytes instead of %d", len(frames), size)
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing a log: %w", err)
	}
	return frames, nil
}

// replayBlocks is a log in consecutive compressed blocks of whole events. Together they are one valid zstd stream.
type replayBlocks struct {
	rawBytes   int
	compressed []byte
	ends       []int64 // the last sequence of each block; nil if there is one block
	offsets    []int32 // where each block starts in compressed
}

// compressBlocks compresses a log that starts with sequence 1.
func compressBlocks(log []byte) *replayBlocks {
	b := &replayBlocks{rawBytes: len(log)}
	if len(log) <= replayBlock {
		b.compressed = compress(log)
		return b
	}
	for last := int64(0); len(log) > 0; {
		block := log
		if len(log) > replayBlock {
			if i := bytes.IndexByte(log[replayBlock:], '\n'); i >= 0 {
				block = log[:replayBlock+i+1]
			}
		}
		log = log[len(block):]
		last += int64(bytes.Count(block, []byte{'\n'}))
		b.ends, b.offsets = append(b.ends, last), append(b.offsets, int32(len(b.compressed))) // a column holds less than 2 GiB
		b.compressed = append(b.compressed, compress(block)...)
	}
	return b
}

// decompressBlock returns the bytes of one block, whose header contains their number.
func decompressBlock(compressed []byte) ([]byte, error) {
	frames, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing a block of a log: %w", err)
	}
	return frames, nil
}

const (
	// If the log has several blocks, only the block with the event after the cursor is read: the column is stored
	// without compression, so Postgres can read a part of it.
	readReplaySQL = `
select t.turn_id, r.raw_bytes, coalesce(r.last_sequence, 0), coalesce(b.before, 0), b.last,
       case when b.last is null then r.frames
            else substr(r.frames, b.first_byte + 1, coalesce(b.next_byte, length(r.frames)) - b.first_byte) end
from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and ` + conversations.Visible + `
left join turn_replays r on r.account_id = t.account_id and r.turn_id = t.turn_id and r.last_sequence > $3
left join lateral (
    select coalesce(r.block_ends[i - 1], 0) as before, r.block_ends[i] as last,
           r.block_offsets[i] as first_byte, r.block_offsets[i + 1] as next_byte
    from generate_subscripts(r.block_ends, 1) i where r.block_ends[i] > $3
    order by i limit 1
) b on true
where t.account_id = $1 and t.turn_id = $2`
	// Reads at most 1,000 whole rows, until their frames exceed maxBytes; the row that exceeds it is still read, so
	// there is always progress. Without the limit, every page would add up the sizes of all following rows. The key
	// locates the row that contains the event after the cursor; by last_sequence alone, Postgres would read all earlier
	// rows, of which a live turn has thousands, each on a separate disk page. The condition compares with the
	// sub-select alone, since under row-level security no index serves a condition with coalesce.
	readEventsSQL = `
select frames, first_sequence, last_sequence from (
    select frames, first_sequence, last_sequence, sum(length(frames)) over (order by first_sequence) - length(frames) as before
    from (
        select frames, first_sequence, last_sequence
        from turn_events
        where account_id = $1 and turn_id = $2 and last_sequence > $3
          and first_sequence >= (select coalesce((
              select first_sequence from turn_events where account_id = $1 and turn_id = $2 and first_sequence <= $3 + 1
              order by first_sequence desc limit 1), 0))
        order by first_sequence limit 1000
    ) page
) e where before < $4 order by first_sequence`
)

// storedReplay holds the columns of turn_replays that a read needs.
type storedReplay struct {
	turn       protocol.TurnID
	rawBytes   *int // nil: there is no row, or nothing in it follows the cursor
	last       int64
	before     int64  // the last sequence before the block
	blockLast  *int64 // the last sequence of the block; nil: the log is one block
	compressed []byte
}

// frames decompresses the columns; last is the sequence of the last event.
func (r *storedReplay) frames() (frames []byte, last int64, err error) {
	if r.blockLast == nil {
		frames, err = decompress(r.compressed, *r.rawBytes)
		return frames, r.last, err
	}
	frames, err = decompressBlock(r.compressed)
	return frames, *r.blockLast, err
}

// TurnFrames returns committed events after a sequence: from the replay row if the turn has ended, else from the
// chunks, which contain the same bytes. If there are none, last is after. The chunks are read only if there is no
// replay row: they are in many partitions, and a live turn is mostly read from memory.
func (t *Store) TurnFrames(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) (frames []byte, last int64, err error) {
	var r storedReplay
	batch := &pgx.Batch{}
	batch.Queue(readReplaySQL, account, turn, after).QueryRow(func(row pgx.Row) error {
		return row.Scan(&r.turn, &r.rawBytes, &r.last, &r.before, &r.blockLast, &r.compressed)
	})
	if err := t.db.Send(ctx, account, batch); err != nil {
		return nil, after, fmt.Errorf("reading the log of a turn: %w", err)
	}
	if r.rawBytes == nil {
		return t.chunks(ctx, account, turn, after, maxBytes)
	}
	frames, end, err := r.frames()
	if err != nil {
		return nil, after, err
	}
	frames, last = pageOf(protocol.SkipFrames(frames, after-r.before), after, end, maxBytes)
	return frames, last, nil
}

// chunks returns committed events from turn_events.
func (t *Store) chunks(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) ([]byte, int64, error) {
	log := turnLog{last: -1}
	batch := &pgx.Batch{}
	batch.Queue(readEventsSQL, account, turn, after, maxBytes).Query(func(rows pgx.Rows) error {
		return log.readAfter(rows, after)
	})
	if err := t.db.Send(ctx, account, batch); err != nil {
		return nil, after, fmt.Errorf("reading the log of a turn: %w", err)
	}
	return log.frames, max(log.last, after), nil
}

// readAfter collects rows, the first of which may start at or before after.
func (l *turnLog) readAfter(rows pgx.Rows, after int64) error {
	var run []byte
	var first, last int64
	l.last = after
	_, err := pgx.ForEachRow(rows, []any{&run, &first, &last}, func() error {
		if first > l.last+1 {
			return errLogGap
		}
		l.frames, l.last = append(l.frames, protocol.SkipFrames(run, l.last+1-first)...), last
		return nil
	})
	return err
}

// pageOf cuts frames to about maxBytes, at the end of an event. They start after the sequence after and end with end.
func pageOf(frames []byte, after, end int64, maxBytes int) ([]byte, int64) {
	if len(frames) <= maxBytes {
		return frames, end
	}
	cut := maxBytes
	if i := bytes.IndexByte(frames[maxBytes:], '\n'); i >= 0 {
		cut += i + 1
	} else {
		cut = len(frames)
	}
	return frames[:cut], after + int64(bytes.Count(frames[:cut], []byte{'\n'}))
}
