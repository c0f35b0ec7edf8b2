package persistence

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"turnstone/protocol"
)

const (
	// replayBlock is how many bytes of a log are compressed together, so also how many are decompressed to read one event.
	replayBlock = 256 << 10
	// replayWindow is how far back the compression of a log looks: its lines repeat their neighbours.
	replayWindow = 256 << 10
	// maxLog bounds what a row may unfold to.
	maxLog = 1 << 30
)

// packer and unpacker serve every goroutine at once.
var (
	packer   = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(replayWindow)))
	unpacker = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxLog)))
)

// must takes what can only fail for options, which are constants here.
func must[T any](made T, err error) T {
	if err != nil {
		panic("persistence: " + err.Error())
	}
	return made
}

// compress folds a log: the fastest level, since every end of a turn pays for it, and lines of one turn repeat each other
// so much that the best saves little more.
func compress(log []byte) []byte { return packer.EncodeAll(log, make([]byte, 0, len(log)/8)) }

// zstdMagic begins every row that compress made. Rows of older versions are DEFLATE, of which it is no valid beginning:
// it would be a stored block whose length and the length's complement do not fit.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// decompress gives back the bytes of a log; size is how many they are.
func decompress(compressed []byte, size int) ([]byte, error) {
	frames := make([]byte, size)
	var err error
	if bytes.HasPrefix(compressed, zstdMagic) {
		frames, err = unpacker.DecodeAll(compressed, frames[:0])
	} else {
		_, err = io.ReadFull(flate.NewReader(bytes.NewReader(compressed)), frames)
	}
	if err == nil && len(frames) != size {
		err = fmt.Errorf("%d bytes in place of %d", len(frames), size)
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing a log: %w", err)
	}
	return frames, nil
}

// replayBlocks is a log in compressed blocks, one after the other, each of whole events. Together they are one valid zstd
// stream.
type replayBlocks struct {
	rawBytes   int
	compressed []byte
	ends       []int64 // the last sequence of each block; nil for one block
	offsets    []int32 // where each block begins in compressed
}

// compressBlocks compresses a log that begins with sequence 1.
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
		b.ends, b.offsets = append(b.ends, last), append(b.offsets, int32(len(b.compressed))) //nolint:gosec // a column holds less than 2 GiB
		b.compressed = append(b.compressed, compress(block)...)
	}
	return b
}

// decompressBlock gives back the bytes of one block, whose size its header holds.
func decompressBlock(compressed []byte) ([]byte, error) {
	frames, err := unpacker.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing a block of a log: %w", err)
	}
	return frames, nil
}

const (
	// Of a log in blocks only the one that holds what follows the cursor is read: the column is stored without
	// compression, so that Postgres reads a part of it.
	readReplaySQL = `
select t.turn_id, r.raw_bytes, coalesce(r.last_sequence, 0), coalesce(b.before, 0), b.last,
       case when b.last is null then r.frames
            else substr(r.frames, b.first_byte + 1, coalesce(b.next_byte, length(r.frames)) - b.first_byte) end
from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and c.deleted_at is null
left join turn_replays r on r.account_id = t.account_id and r.turn_id = t.turn_id and r.last_sequence > $3
left join lateral (
    select coalesce(r.block_ends[i - 1], 0) as before, r.block_ends[i] as last,
           r.block_offsets[i] as first_byte, r.block_offsets[i + 1] as next_byte
    from generate_subscripts(r.block_ends, 1) i where r.block_ends[i] > $3
    order by i limit 1
) b on true
where t.account_id = $1 and t.turn_id = $2`
	// Reads at most 1,000 whole rows, until maxBytes were passed: the row that passes it is still read, so there is always
	// progress. Without the limit the sizes of all that follow would be added up for each page. The key
	// leads to the row that holds what follows the cursor: by last_sequence alone all rows before it would be read, of which
	// a live turn has thousands, each on a page of its own. The sub-select is compared by itself, since under row-level security
	// an index serves no condition with coalesce.
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

// storedReplay is what a read needs of the row of turn_replays.
type storedReplay struct {
	turn       protocol.TurnID
	rawBytes   *int // nil: there is no row, or nothing in it follows the cursor
	last       int64
	before     int64  // the sequence before the block
	blockLast  *int64 // the last one of the block; nil: the log is one block
	compressed []byte
}

// frames decompresses what was read; last is the sequence of its last event.
func (r *storedReplay) frames() (frames []byte, last int64, err error) {
	if r.blockLast == nil {
		frames, err = decompress(r.compressed, *r.rawBytes)
		return frames, r.last, err
	}
	frames, err = decompressBlock(r.compressed)
	return frames, *r.blockLast, err
}

// TurnFrames reads committed events after a sequence: from the replay row of a turn that has ended, else from the chunks,
// which are the same bytes. last is after when there are none. The chunks are read only when there is no row: they are in
// many partitions, and a live turn is mostly read from memory.
func (t *Turns) TurnFrames(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) (frames []byte, last int64, err error) {
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

func (t *Turns) chunks(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) ([]byte, int64, error) {
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

// readAfter gathers rows, the first of which may begin at or before after.
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

// pageOf cuts a run that begins after a sequence and ends with end to about maxBytes, at the end of an event.
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
