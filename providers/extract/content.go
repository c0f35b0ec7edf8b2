package extract

import (
	"bytes"
	"io"
)

// content is a content that can be read at any position.
type content struct {
	io.ReaderAt
	size int64
}

func (c content) reader() io.Reader { return io.NewSectionReader(c.ReaderAt, 0, c.size) }

var oleHead = []byte{0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1}

// isOLE reports whether a content is the container of encrypted Office documents.
func (c content) isOLE() bool {
	head := make([]byte, len(oleHead))
	_, err := c.ReadAt(head, 0)
	return err == nil && bytes.Equal(head, oleHead)
}
