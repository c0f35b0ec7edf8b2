package search

import (
	"context"
	"io"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"turnstone/protocol/words"
)

// flow is a text that is tokenized piece by piece, so that its size does not matter. Its parts are joined by
// partSeparator. The memory of a flow is that of the tokens that its consumer keeps.
type flow struct {
	ctx     context.Context // of the call that reads the text
	t       words.Tokenizer
	consume func(normalized []byte, end bool) error // takes t.Tokens after each piece, and once at the end

	sampled bool   // the language of the current part is known, or not needed
	sample  []byte // the beginning of the part until then

	parts  int
	form   io.WriteCloser // writes the normal form of the current part to normalized
	broken []byte         // the beginning of a character that the last piece has cut
}

// normalized receives the normal form of a flow.
type normalized struct{ f *flow }

func (n normalized) Write(text []byte) (int, error) {
	if err := n.f.ctx.Err(); err != nil {
		return 0, err
	}
	return len(text), n.f.feed(text)
}

// feed passes a piece of a text on. If the stems of words are needed, the language of each part is detected first.
func (f *flow) feed(text []byte) error {
	if !f.sampled {
		if f.sample = append(f.sample, text...); len(f.sample) < words.SampleBytes {
			return nil
		}
		return f.endSample()
	}
	f.t.Feed(text)
	return f.consume(text, false)
}

func (f *flow) endSample() error {
	f.sampled = true
	if language, certain := words.Detect(string(f.sample)); certain || f.t.Stems.Language == words.NoLanguage {
		*f.t.Stems = words.Stems{Language: language}
	}
	f.t.Feed(f.sample)
	return f.consume(f.sample, false)
}

// part begins a part of the text.
func (f *flow) part() error {
	if err := f.endPart(); err != nil {
		return err
	}
	if f.parts++; f.parts > 1 {
		f.t.Gap(len(partSeparator))
		if err := f.consume([]byte(partSeparator), false); err != nil {
			return err
		}
	}
	f.form = norm.NFC.Writer(normalized{f})
	f.sampled, f.sample = f.t.Stems == nil, f.sample[:0]
	return nil
}

func (f *flow) endPart() error {
	if f.form == nil {
		return nil
	}
	_, err := f.form.Write(f.broken)
	f.broken = f.broken[:0]
	if closed := f.form.Close(); err == nil {
		err = closed
	}
	f.form = nil
	if !f.sampled && err == nil {
		err = f.endSample()
	}
	f.t.End()
	return err
}

// write adds a piece of the current part. A piece may end within a character.
func (f *flow) write(piece []byte) error {
	f.broken = append(f.broken, piece...)
	whole := len(f.broken)
	for i := 1; i < utf8.UTFMax && i <= len(f.broken); i++ {
		if start := len(f.broken) - i; utf8.RuneStart(f.broken[start]) {
			if !utf8.FullRune(f.broken[start:]) {
				whole = start
			}
			break
		}
	}
	_, err := f.form.Write(f.broken[:whole])
	f.broken = append(f.broken[:0], f.broken[whole:]...)
	return err
}

// end ends the text.
func (f *flow) end() error {
	if err := f.endPart(); err != nil {
		return err
	}
	return f.consume(nil, true)
}

// add adds whole parts.
func (f *flow) add(parts []string) error {
	for _, text := range parts {
		if err := f.part(); err != nil {
			return err
		}
		if err := f.write([]byte(text)); err != nil {
			return err
		}
	}
	return nil
}
