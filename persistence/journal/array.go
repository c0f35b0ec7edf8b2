package journal

import (
	"encoding/binary"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// The array parameters of the journal's statements are encoded by hand, in the binary format of Postgres. They carry
// thousands of rows per second, and pgx, which inspects the Go type of each element, would take longer than the rest of
// an append.

// binaryFormat states that every parameter, or every column, is in the binary format.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// Indexes of the parameters: those of appendEventsSQL, then the additional ones of appendRecordsSQL.
const (
	appendAccount = iota
	appendTurn
	appendOwner
	appendEpoch
	appendFirst
	appendLast
	appendFrames
	appendState
	appendAccepting
	recordAccount
	recordTurn
	recordKind
	recordKey
	recordSequence
	recordBody
	journalColumns
)

var journalTypes = [journalColumns]uint32{
	pgtype.UUIDOID, pgtype.UUIDOID, pgtype.UUIDOID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Int8OID, pgtype.ByteaOID,
	pgtype.TextOID, pgtype.BoolOID,
	pgtype.UUIDOID, pgtype.UUIDOID, pgtype.TextOID, pgtype.TextOID, pgtype.Int8OID, pgtype.TextOID,
}

// wireArray is an encoded one-dimensional array without nulls. It begins with its dimensions, whether it has nulls, the type of
// its elements, its length and its lower bound: four bytes each.
type wireArray []byte

// arrayLength is the offset of the length.
const arrayLength = 12

func (a *wireArray) reset(element uint32) {
	*a = append((*a)[:0], 0, 0, 0, 1, 0, 0, 0, 0)
	*a = binary.BigEndian.AppendUint32(*a, element)
	*a = append(*a, 0, 0, 0, 0, 0, 0, 0, 1)
}

func (a wireArray) setLength(n int) { binary.BigEndian.PutUint32(a[arrayLength:], uint32(n)) }

func (a *wireArray) addBytes(b []byte) {
	*a = append(binary.BigEndian.AppendUint32(*a, uint32(len(b))), b...)
}

func (a *wireArray) addText(s string) {
	*a = append(binary.BigEndian.AppendUint32(*a, uint32(len(s))), s...)
}

func (a *wireArray) addInt4(v int32) {
	*a = binary.BigEndian.AppendUint32(append(*a, 0, 0, 0, 4), uint32(v))
}

func (a *wireArray) addInt8(v int64) {
	*a = binary.BigEndian.AppendUint64(append(*a, 0, 0, 0, 8), uint64(v))
}

func (a *wireArray) addBool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	*a = append(*a, 0, 0, 0, 1, b)
}

// journalArrays holds the parameters of one journal statement.
type journalArrays struct {
	columns [journalColumns]wireArray
	params  [journalColumns][]byte
}

// fill encodes a batch and reports whether it has records.
func (j *journalArrays) fill(batch []*journalEntry) (recorded bool) {
	c := &j.columns
	for i := range c {
		c[i].reset(journalTypes[i])
	}
	records := 0
	for _, e := range batch {
		c[appendAccount].addBytes(e.AccountID[:])
		c[appendTurn].addBytes(e.TurnID[:])
		c[appendOwner].addBytes(e.Owner[:])
		c[appendEpoch].addInt4(e.Epoch)
		c[appendFirst].addInt8(e.First)
		c[appendLast].addInt8(e.Last)
		c[appendFrames].addBytes(e.Frames)
		c[appendState].addText(string(e.State))
		c[appendAccepting].addBool(e.Accepts)
		for _, r := range e.Records {
			c[recordAccount].addBytes(e.AccountID[:])
			c[recordTurn].addBytes(e.TurnID[:])
			c[recordKind].addText(r.Kind)
			c[recordKey].addText(r.Key)
			c[recordSequence].addInt8(r.Sequence)
			c[recordBody].addBytes(r.Body)
		}
		records += len(e.Records)
	}
	for i := range c {
		if i < recordAccount {
			c[i].setLength(len(batch))
		} else {
			c[i].setLength(records)
		}
	}
	return records > 0
}

// values returns the first n parameters.
func (j *journalArrays) values(n int) [][]byte {
	for i := range n {
		j.params[i] = j.columns[i]
	}
	return j.params[:n]
}

// maxPooledArrays limits the size of arrays that are reused for another statement, in bytes.
const maxPooledArrays = 1 << 20

// arrayPool reuses the memory of parameters.
type arrayPool struct{ pool sync.Pool }

var appendArrays arrayPool

func (p *arrayPool) get() *journalArrays {
	if arrays, ok := p.pool.Get().(*journalArrays); ok {
		return arrays
	}
	return new(journalArrays)
}

func (p *arrayPool) put(arrays *journalArrays) {
	clear(arrays.params[:])
	if cap(arrays.columns[appendFrames])+cap(arrays.columns[recordBody]) <= maxPooledArrays {
		p.pool.Put(arrays)
	}
}
