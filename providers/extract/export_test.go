package extract

import "time"

// NewWithTimeout is New with another limit of the time of every child.
func NewWithTimeout(timeout time.Duration, command ...string) *Extractor {
	e := New(command...)
	for task, l := range e.lanes {
		e.lanes[task] = lane{l.slots, timeout}
	}
	return e
}

// MaxText is the limit of a text.
const MaxText = maxText

// MaxBlocks is the limit of the blocks of a text.
const MaxBlocks = maxBlocks

// Shared reports whether children share the network of this process, because the system allows no other.
func (e *Extractor) Shared() bool { return e.program.Shared() }

// MaxThumbnail is the limit of a thumbnail, and MaxPicture that of the larger version.
const (
	MaxThumbnail = maxThumbnail
	MaxPicture   = maxPicture
)

// MaxRecognized is the limit of the pages whose text is recognized.
const MaxRecognized = maxRecognized

// DataFor returns the data of tesseract for a language.
func DataFor(language string, installed []string) string { return dataFor(language, installed) }
