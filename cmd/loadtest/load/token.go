package load

import (
	"bytes"
	"strconv"
)

// The text of a stream consists of tokens that can be counted, checked and timed, in whatever pieces it arrives:
//
//	" @<start>x<interval>"  token 0, due at start (ns of the host computer's clock); token i is due i intervals later
//	" 0001"                 token i, by its last four digits
//	" #<count>"             the end mark, which is not a token: the number of tokens

// IndexDigits is the number of digits of a token's index.
const IndexDigits = 4

var indexes = func() (all [10_000][IndexDigits + 1]byte) {
	for i := range all {
		copy(all[i][:], " 0000")
		text := strconv.Itoa(i)
		copy(all[i][IndexDigits+1-len(text):], text)
	}
	return all
}()

// AppendFirstToken appends token 0.
func AppendFirstToken(to []byte, start, interval int64) []byte {
	to = append(to, " @"...)
	to = strconv.AppendInt(to, start, 10)
	to = append(to, 'x')
	return strconv.AppendInt(to, interval, 10)
}

// AppendToken appends token i.
func AppendToken(to []byte, i int) []byte { return append(to, indexes[i%len(indexes)][:]...) }

// AppendCount appends the end mark.
func AppendCount(to []byte, n int) []byte {
	return strconv.AppendInt(append(to, " #"...), int64(n), 10)
}

// Tally reads such a text in pieces, checks it and reports when each token was due.
type Tally struct {
	start, interval int64
	stamped         bool // the first token was read, with its times
	Tokens          int  // read so far
	Count           int  // from the end mark; -1 before it
	Broken          int  // tokens that were not the expected one
}

// NewTally returns the tally of a text that was not read yet.
func NewTally() Tally { return Tally{Count: -1} }

// Read processes a piece, which ends between two tokens, and calls due with the due time of each token.
func (t *Tally) Read(piece []byte, due func(at int64)) {
	for len(piece) > 0 {
		if piece[0] != ' ' || len(piece) < 2 {
			t.Broken++
			return
		}
		switch piece[1] {
		case '@':
			piece = t.readFirst(piece[2:], due)
		case '#':
			var n int64
			n, piece = LeadingInt(piece[2:])
			t.Count = int(n)
		default:
			if len(piece) < IndexDigits+1 || !bytes.Equal(piece[:IndexDigits+1], indexes[t.Tokens%len(indexes)][:]) {
				t.Broken++
			}
			due(t.start + int64(t.Tokens)*t.interval)
			t.Tokens++
			piece = piece[min(len(piece), IndexDigits+1):]
		}
	}
}

func (t *Tally) readFirst(rest []byte, due func(at int64)) []byte {
	t.start, rest = LeadingInt(rest)
	if len(rest) == 0 || rest[0] != 'x' {
		t.Broken++
		return nil
	}
	t.interval, rest = LeadingInt(rest[1:])
	t.stamped = true
	due(t.start)
	t.Tokens++
	return rest
}

// LeadingInt returns the decimal number at the start of text, and the rest of text.
func LeadingInt(text []byte) (int64, []byte) {
	var n int64
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int64(text[i]-'0')
	}
	return n, text[i:]
}
