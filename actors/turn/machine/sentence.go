package machine

import "strings"

// sentenceScanner finds the end of the sentence that a model is writing, in text that arrives in pieces of any size. The
// end of a line is one too, except within a table and after a heading.
type sentenceScanner struct {
	read    int  // bytes
	written bool // something other than white space
	ended   rune // the mark that ends the sentence, if only closing quotes and brackets have followed; 0: none
	last    rune
	block   bool // the line belongs to a table or is a heading
}

// After this many bytes without the end of a sentence, any line or any word is one.
const (
	longestSentence = 1000
	longestLine     = 2000
)

const (
	spacedMarks  = ".!?…؟۔।" // white space follows
	wideMarks    = "。！？"
	closingMarks = `"')]*_~` + "`”’»」』）】"
)

// newSentenceScanner returns a scanner of what follows the text, whose last line may be incomplete.
func newSentenceScanner(text []byte) sentenceScanner {
	line := len(text) // its start
	for line > 0 && text[line-1] != '\n' {
		line--
	}
	if line == len(text) {
		return sentenceScanner{}
	}
	return sentenceScanner{last: ' ', block: startsBlock(rune(text[line]))}
}

// startsBlock reports whether a line that starts with the character belongs to a table or is a heading.
func startsBlock(first rune) bool { return first == '|' || first == '#' }

// find returns how many bytes of delta belong to the sentence; -1: delta does not contain its end.
func (s *sentenceScanner) find(delta string) int {
	for i, r := range delta {
		space := r == ' ' || r == '\n' || r == '\t'
		switch {
		case space && s.endsAt(r):
			return i + len(string(r))
		case !space && s.ended != 0 && strings.ContainsRune(wideMarks, s.ended) && !strings.ContainsRune(closingMarks+wideMarks, r):
			return i
		}
		s.advance(r, space)
	}
	return -1
}

// endsAt reports whether the sentence ends before this white space.
func (s *sentenceScanner) endsAt(space rune) bool {
	switch {
	case !s.written:
		return false
	case space == '\n':
		return !s.block || s.read > longestSentence
	}
	return s.ended != 0 && !s.block || s.read > longestLine
}

func (s *sentenceScanner) advance(r rune, space bool) {
	startsLine := s.last == '\n' || s.last == 0
	switch {
	case strings.ContainsRune(wideMarks, r):
		s.ended = r
	case strings.ContainsRune(spacedMarks, r):
		if s.ended = r; r == '.' && s.last >= '0' && s.last <= '9' { // of a decimal or of a list
			s.ended = 0
		}
	case !strings.ContainsRune(closingMarks, r):
		s.ended = 0
	}
	s.written = s.written || !space
	if startsLine {
		s.block = startsBlock(r)
	}
	s.read += len(string(r))
	s.last = r
}
