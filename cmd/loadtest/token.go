package main

import (
	"bytes"
	"strconv"
)

// The text of a stream is made of tokens that can be counted, checked and timed wherever it is cut:
//
//	" @<start>x<interval>"  the first, due at start (nanoseconds of the machine's clock); token i is due i intervals later
//	" 0001"                 token i, by its last four digits
//	" #<count>"             the last, which is no token: how many there were
const indexDigits = 4

var indexes = func() (all [10_000][indexDigits + 1]byte) {
	for i := range all {
		copy(all[i][:], " 0000")
		text := strconv.Itoa(i)
		copy(all[i][indexDigits+1-len(text):], text)
	}
	return all
}()

func appendFirstToken(to []byte, start, interval int64) []byte {
	to = append(to, " @"...)
	to = strconv.AppendInt(to, start, 10)
	to = append(to, 'x')
	return strconv.AppendInt(to, interval, 10)
}

func appendToken(to []byte, i int) []byte { return append(to, indexes[i%len(indexes)][:]...) }

func appendCount(to []byte, n int) []byte {
	return strconv.AppendInt(append(to, " #"...), int64(n), 10)
}

// tally reads such a text in pieces and says when each token was due.
type tally struct {
	start, interval int64
	stamped         bool // the first token came and carried its time
	tokens          int  // seen
	count           int  // as the last piece tells; -1 before it
	broken          int  // tokens that were not the next one
}

func newTally() tally { return tally{count: -1} }

// read takes a piece, which ends between two tokens, and tells the due times of its tokens.
func (t *tally) read(piece []byte, due func(at int64)) {
	for len(piece) > 0 {
		if piece[0] != ' ' || len(piece) < 2 {
			t.broken++
			return
		}
		switch piece[1] {
		case '@':
			piece = t.readFirst(piece[2:], due)
		case '#':
			var n int64
			n, piece = leadingInt(piece[2:])
			t.count = int(n)
		default:
			if len(piece) < indexDigits+1 || !bytes.Equal(piece[:indexDigits+1], indexes[t.tokens%len(indexes)][:]) {
				t.broken++
			}
			due(t.start + int64(t.tokens)*t.interval)
			t.tokens++
			piece = piece[min(len(piece), indexDigits+1):]
		}
	}
}

func (t *tally) readFirst(rest []byte, due func(at int64)) []byte {
	t.start, rest = leadingInt(rest)
	if len(rest) == 0 || rest[0] != 'x' {
		t.broken++
		return nil
	}
	t.interval, rest = leadingInt(rest[1:])
	t.stamped = true
	due(t.start)
	t.tokens++
	return rest
}

func leadingInt(text []byte) (int64, []byte) {
	var n int64
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int64(text[i]-'0')
	}
	return n, text[i:]
}
