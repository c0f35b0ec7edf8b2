package extract

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// rendition returns a picture encoded again: as PNG if it is transparent somewhere, else as JPEG. Its longer side has at most side
// pixels, and it has at most limit bytes. It has nothing of the original but its pixels.
func rendition(of *image.RGBA, side, limit int) ([]byte, error) {
	small := scaled(of, side)
	for {
		raw, err := encoded(small)
		if err != nil || len(raw) <= limit {
			return raw, err
		}
		bounds := small.Bounds()
		small = scaled(small, max(bounds.Dx(), bounds.Dy())*3/4) // a picture of noise
	}
}

// isRendition reports whether the header of a picture is one that rendition writes.
func isRendition(raw []byte, side, limit int) bool {
	if len(raw) > limit {
		return false
	}
	read := png.DecodeConfig
	if bytes.HasPrefix(raw, []byte{0xFF, 0xD8}) {
		read = jpeg.DecodeConfig
	}
	header, err := read(bytes.NewReader(raw))
	return err == nil && header.Width > 0 && header.Height > 0 && max(header.Width, header.Height) <= side
}

func encoded(of *image.RGBA) ([]byte, error) {
	var b bytes.Buffer
	if of.Opaque() {
		err := jpeg.Encode(&b, of, &jpeg.Options{Quality: renditionQuality})
		return b.Bytes(), err
	}
	err := png.Encode(&b, of)
	return b.Bytes(), err
}

// scaled returns a picture whose longer side has at most side pixels. It does not enlarge.
func scaled(of image.Image, side int) *image.RGBA {
	bounds := of.Bounds()
	width, height := bounds.Dx(), bounds.Dy()
	if longer := max(width, height); longer > side {
		width, height = max(1, width*side/longer), max(1, height*side/longer)
	}
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	if already, is := of.(*image.RGBA); is && bounds == small.Rect {
		return already
	}
	if bounds.Dx() == width && bounds.Dy() == height {
		draw.Draw(small, small.Bounds(), of, bounds.Min, draw.Src)
	} else {
		draw.CatmullRom.Scale(small, small.Bounds(), of, bounds, draw.Src, nil)
	}
	return small
}

// orientation is the value of the EXIF tag that says how a stored picture is shown: 1 to 8.
type orientation int

const upright orientation = 1

// swapsSides reports whether the width of the stored picture is the height of the shown one.
func (o orientation) swapsSides() bool { return o >= 5 }

// apply returns a stored picture as it is shown.
func (o orientation) apply(stored *image.RGBA) *image.RGBA {
	if o == upright {
		return stored
	}
	width, height := stored.Rect.Dx(), stored.Rect.Dy()
	shown := image.NewRGBA(stored.Rect)
	if o.swapsSides() {
		shown = image.NewRGBA(image.Rect(0, 0, height, width))
	}
	for y := range shown.Rect.Dy() {
		for x := range shown.Rect.Dx() {
			fromX, fromY := x, y
			if o.swapsSides() {
				fromX, fromY = y, x
			}
			if o == 2 || o == 3 || o == 7 || o == 8 {
				fromX = width - 1 - fromX
			}
			if o == 3 || o == 4 || o == 6 || o == 7 {
				fromY = height - 1 - fromY
			}
			copy(shown.Pix[shown.PixOffset(x, y):][:4], stored.Pix[stored.PixOffset(fromX, fromY):])
		}
	}
	return shown
}

// orientationOf returns the orientation of a JPEG picture; upright if none is stored at its beginning, where cameras put it.
func orientationOf(c content) orientation {
	const start, application1, scan = 0xD8, 0xE1, 0xDA
	head := make([]byte, min(maxExif, c.size))
	n, _ := c.ReadAt(head, 0) // what cannot be read has no orientation
	if head = head[:n]; len(head) < 2 || head[1] != start {
		return upright
	}
	for head = head[2:]; len(head) >= 4 && head[0] == 0xFF; {
		marker, length := head[1], int(binary.BigEndian.Uint16(head[2:]))
		if marker == 0xFF { // it fills a gap
			head = head[1:]
			continue
		}
		if marker == scan || length < 2 || len(head) < 2+length {
			return upright
		}
		if exif, is := bytes.CutPrefix(head[4:2+length], []byte("Exif\x00\x00")); marker == application1 && is {
			return orientationIn(exif)
		}
		head = head[2+length:]
	}
	return upright
}

// orientationIn reads the tag in the first directory of a TIFF structure.
func orientationIn(exif []byte) orientation {
	const header, entrySize, tag, short = 8, 12, 0x0112, 3
	if len(exif) < header {
		return upright
	}
	var order binary.ByteOrder = binary.BigEndian
	if exif[0] == 'I' {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(exif[4:]))
	if at+2 > uint64(len(exif)) {
		return upright
	}
	count := int(order.Uint16(exif[at:]))
	for entries := exif[at+2:]; count > 0 && len(entries) >= entrySize; count, entries = count-1, entries[entrySize:] {
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if o := orientation(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
		}
	}
	return upright
}
