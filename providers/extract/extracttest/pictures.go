// Package extracttest makes contents for tests that no library writes. Only tests import it.
package extracttest

import (
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"strings"
)

// PlainWebP returns a lossless WebP picture of one color, whose pixels need no bits.
func PlainWebP(width, height int, of color.Color) string {
	var bits []byte
	n := 0
	put := func(value, count int) {
		for i := range count {
			if n%8 == 0 {
				bits = append(bits, 0)
			}
			bits[n/8] |= byte(value >> i & 1 << (n % 8))
			n++
		}
	}
	c := color.NRGBAModel.Convert(of).(color.NRGBA)
	put(width-1, 14)
	put(height-1, 14)
	put(1, 1) // it may be transparent
	put(0, 3) // the version
	put(0, 3) // no transform, no cache of colors, one group of codes
	for _, value := range []uint8{c.G, c.R, c.B, c.A} {
		put(0b101, 3) // a code with one symbol of 8 bits
		put(int(value), 8)
	}
	put(0b0001, 4) // the code of the distances
	body := append([]byte("\x2f"), bits...)
	if len(body)%2 == 1 {
		body = append(body, 0)
	}
	size := func(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	return "RIFF" + size(12+len(body)) + "WEBPVP8L" + size(len(body)) + string(body)
}

// AnimatedWebP returns an animation of plain frames, each a picture at a place. Its canvas is of the given size.
func AnimatedWebP(width, height int, frames ...string) string {
	three := func(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16)}) }
	chunk := func(name, body string) string {
		if len(body)%2 == 1 {
			body += "\x00"
		}
		return name + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body
	}
	body := "WEBP" + chunk("VP8X", "\x12\x00\x00\x00"+three(width-1)+three(height-1)) + chunk("ANIM", "\xFF\xFF\xFF\xFF\x00\x00")
	for _, one := range frames {
		body += chunk("ANMF", three(0)+three(0)+three(width/2-1)+three(height/2-1)+three(100)+"\x00"+one[12:])
	}
	return chunk("RIFF", body)
}

// WithOrientation adds an orientation to a PNG or WebP picture, in a chunk for metadata at the end.
func WithOrientation(picture string, orientation uint16) string {
	order := binary.BigEndian
	exif := string(order.AppendUint16(order.AppendUint32([]byte("MM\x00*"), 8), 1))
	exif += string(order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, 0x0112), 3), 1)) + string(order.AppendUint16(nil, orientation)) + "\x00\x00\x00\x00\x00\x00"
	if strings.HasPrefix(picture, "RIFF") {
		picture += "EXIF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(exif)))) + exif
		return picture[:4] + string(binary.LittleEndian.AppendUint32(nil, uint32(len(picture)-8))) + picture[8:]
	}
	const end = 12
	body := "eXIf" + exif
	chunk := string(order.AppendUint32(nil, uint32(len(exif)))) + body + string(order.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body))))
	return picture[:len(picture)-end] + chunk + picture[len(picture)-end:]
}

// Quarters returns a picture that has another color in each corner: red, green, blue and white, from left to right and from
// the top to the bottom.
func Quarters(width, height int) *image.RGBA {
	canvas := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			canvas.Set(x, y, CornerColors[x*2/width+y*2/height*2])
		}
	}
	return canvas
}

// CornerColors are the colors of Quarters.
var CornerColors = []color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}

// Turned adds an EXIF orientation, and other metadata, to a JPEG picture.
func Turned(picture string, orientation uint16, order binary.AppendByteOrder) string {
	mark := "II*\x00"
	if order == binary.BigEndian {
		mark = "MM\x00*"
	}
	exif := order.AppendUint16(order.AppendUint32([]byte("Exif\x00\x00"+mark), 8), 2) // two entries
	entry := func(tag, kind uint16, count uint32, value []byte) {
		exif = append(order.AppendUint32(order.AppendUint16(order.AppendUint16(exif, tag), kind), count), value...)
	}
	entry(0x010F, 2, 4, []byte("GPS\x00"))
	entry(0x0112, 3, 1, append(order.AppendUint16(nil, orientation), 0, 0))
	exif = append(exif, 0, 0, 0, 0)
	return picture[:2] + "\xFF\xE1" + string(binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2))) + string(exif) + picture[2:]
}
