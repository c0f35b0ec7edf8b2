package machine

import "strings"

// sentenceScanner finds the end of the sentence that a model is writing, in text that arrives in pieces of any size. The
// end of a line is one too, except within a table and after a heading.
type sentenceScanner struct {
	read    int  // bytes
	written bool // something other than white space
	ended   rune // the mark that ends the sentence, if only closing quotes, brackets and white space have followed; 0: none
	last    rune
	word    int  // characters of the current word
	inLine  bool // the line has something other than white space
	block   bool // the line belongs to a table or is a heading
}

// After this many bytes without the end of a sentence, any line, any word or any character is one.
const (
	longestSentence = 1000
	longestLine     = 2000
	longestWord     = 3000
)

const (
	spacedMarks  = ".!?…؟۔।" // white space follows
	wideMarks    = "。！？"
	closingMarks = `"')]*_~` + "`”’»」』）】》"

	wordStarts = " \n\t\r([-/*_`\"“„" // before the first character of a word, as are marks

	// What follows a mark and white space within a sentence: after an abbreviation, or as a citation of it.
	innerStarts = "abcdefghijklmnopqrstuvwxyz0123456789["
)

// newSentenceScanner returns a scanner of what follows the text, whose last line may be incomplete.
func newSentenceScanner(text []byte) sentenceScanner {
	line := len(text)
	for line > 0 && text[line-1] != '\n' {
		line--
	}
	head := string(text[line:min(line+longestSentence, len(text))])
	tail := string(text[max(line+len(head), len(text)-longestSentence):])
	var s sentenceScanner
	for _, r := range head + tail { // the middle of a long line does not matter
		s.advance(r)
	}
	s.read = 0
	return s
}

// find returns how many bytes of delta belong to the sentence; -1: delta does not contain its end. In code, only a line ends.
func (s *sentenceScanner) find(delta string, code bool) int {
	for i, r := range delta {
		switch {
		case r != '\n' && s.endsBefore(r, code):
			return i
		case r == '\n' && s.written && (code || !s.block || s.read > longestSentence):
			return i + 1
		}
		s.advance(r)
	}
	return -1
}

// endsBefore reports whether the sentence ends before this character, which is not the end of a line.
func (s *sentenceScanner) endsBefore(r rune, code bool) bool {
	switch {
	case s.read > longestLine && isSpace(r) && !isSpace(s.last), s.read > longestWord:
		return true // a token has white space at its start, so it stays whole
	case code, s.block, s.ended == 0:
		return false
	case strings.ContainsRune(wideMarks, s.ended):
		return !isSpace(r) && !strings.ContainsRune(closingMarks+wideMarks, r)
	}
	return isSpace(s.last) && !isSpace(r) && !strings.ContainsRune(innerStarts, r)
}

func isSpace(r rune) bool { return strings.ContainsRune(" \n\t\r", r) }

func (s *sentenceScanner) advance(r rune) {
	space := isSpace(r)
	switch {
	case strings.ContainsRune(wideMarks, r):
		s.ended = r
	case strings.ContainsRune(spacedMarks, r):
		if s.ended = r; r == '.' && (s.word == 1 || s.last >= '0' && s.last <= '9') { // of “e. g.”, of a decimal or of a list
			s.ended = 0
		}
	case r == '\n', !space && !strings.ContainsRune(closingMarks, r):
		s.ended = 0
	}
	if s.word++; strings.ContainsRune(wordStarts+spacedMarks+wideMarks, r) {
		s.word = 0
	}
	if !space {
		if !s.inLine {
			s.block = r == '|' || r == '#'
		}
		s.written = true
	}
	s.inLine = r != '\n' && (s.inLine || !space)
	s.read += len(string(r))
	s.last = r
}
