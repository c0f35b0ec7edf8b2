package extract

import "encoding/binary"

// orientationOfTIFF returns the orientation of the first page of a TIFF picture.
func orientationOfTIFF(c content) orientation {
	at, order, is := firstDirectory(c)
	if !is {
		return upright
	}
	const most = 4 << 10 // of the tags of a directory
	raw := make([]byte, min(most, c.size-at))
	n, _ := c.ReadAt(raw, at) // what cannot be read has no orientation
	mark := "MM\x00*"
	if order == binary.LittleEndian {
		mark = "II*\x00"
	}
	header := make([]byte, 4)
	order.PutUint32(header, 8) // the directory follows
	return orientationIn(append(append([]byte(mark), header...), raw[:n]...))
}

// firstDirectory returns where the first page of a TIFF picture is described.
func firstDirectory(c content) (at int64, order binary.ByteOrder, is bool) {
	header := make([]byte, 8)
	if _, err := c.ReadAt(header, 0); err != nil {
		return 0, nil, false
	}
	order = binary.BigEndian
	if header[0] == 'I' {
		order = binary.LittleEndian
	}
	at = int64(order.Uint32(header[4:]))
	return at, order, at > 0 && at < c.size
}

// pagesOfTIFF counts the pages of a TIFF picture, at most maxBlocks.
func pagesOfTIFF(c content) int {
	const entrySize = 12
	at, order, is := firstDirectory(c)
	pages := 0
	for is && pages < maxBlocks {
		number := make([]byte, 4)
		if _, err := c.ReadAt(number[:2], at); err != nil {
			break
		}
		pages++
		if _, err := c.ReadAt(number, at+2+entrySize*int64(order.Uint16(number))); err != nil {
			break
		}
		at = int64(order.Uint32(number))
		is = at > 0 && at < c.size
	}
	return pages
}
