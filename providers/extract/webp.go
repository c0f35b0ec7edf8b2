package extract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// riffChunk is a part of a WebP picture: a header of 8 bytes, and a body that is filled up to an even size.
type riffChunk struct {
	name string
	body []byte
}

const (
	riffHeader  = 12
	chunkHeader = 8
	frameHeader = 16
)

var errWebP = errors.New("the parts of a WebP picture cannot be read")

func chunksIn(raw []byte) (all []riffChunk) {
	for len(raw) >= chunkHeader {
		size := uint64(binary.LittleEndian.Uint32(raw[4:]))
		if size > uint64(len(raw)-chunkHeader) {
			return all
		}
		all = append(all, riffChunk{string(raw[:4]), raw[chunkHeader : chunkHeader+size]})
		raw = raw[min(chunkHeader+size+size%2, uint64(len(raw))):]
	}
	return all
}

func (c riffChunk) encoded() []byte {
	raw := append(binary.LittleEndian.AppendUint32([]byte(c.name), uint32(len(c.body))), c.body...) // it had this size
	if len(c.body)%2 == 1 {
		raw = append(raw, 0)
	}
	return raw
}

// decodeWebP decodes a picture, or the first one of an animation, which the library does not read.
func decodeWebP(r io.Reader) (image.Image, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(raw) < riffHeader {
		return nil, errWebP
	}
	for _, one := range chunksIn(raw[riffHeader:]) {
		if one.name == "ANMF" {
			return firstFrame(one.body)
		}
	}
	return webp.Decode(bytes.NewReader(raw))
}

// firstFrame decodes the frame of an animation, as a picture of its own, and puts it at its place.
func firstFrame(frame []byte) (image.Image, error) {
	if len(frame) < frameHeader {
		return nil, errWebP
	}
	number := func(at int) int { return int(frame[at]) | int(frame[at+1])<<8 | int(frame[at+2])<<16 }
	place := image.Pt(2*number(0), 2*number(3))
	var body []byte
	alpha := byte(0)
	for _, one := range chunksIn(frame[frameHeader:]) {
		switch one.name {
		case "ALPH":
			alpha = 0x10
			body = append(body, one.encoded()...)
		case "VP8 ", "VP8L":
			body = append(body, one.encoded()...)
		}
	}
	if alpha != 0 { // an extended header is needed: flags, and the size that the frame has
		header := riffChunk{"VP8X", append([]byte{alpha, 0, 0, 0}, frame[6:12]...)}
		body = append(header.encoded(), body...)
	}
	whole := append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body)+4)), "WEBP"...) // smaller than the content
	whole = append(whole, body...)
	header, err := webp.DecodeConfig(bytes.NewReader(whole))
	if err != nil || header.Width*header.Height > maxPixels {
		return nil, errWebP // a frame cannot be larger than its picture
	}
	picture, err := webp.Decode(bytes.NewReader(whole))
	if err != nil || place == (image.Point{}) {
		return picture, err
	}
	moved := image.NewNRGBA(picture.Bounds().Add(place))
	draw.Draw(moved, moved.Bounds(), picture, picture.Bounds().Min, draw.Src)
	return moved, nil
}

// orientationOfWebP returns the orientation in the metadata of a WebP picture.
func orientationOfWebP(c content) orientation {
	return orientationInChunk(c, riffHeader, binary.LittleEndian, "EXIF", func(at, size int64) int64 { return at + chunkHeader + size + size%2 })
}

// orientationOfPNG returns the orientation in the metadata of a PNG picture.
func orientationOfPNG(c content) orientation {
	const signature, checksum = 8, 4
	return orientationInChunk(c, signature, binary.BigEndian, "eXIf", func(at, size int64) int64 { return at + chunkHeader + size + checksum })
}

// orientationInChunk walks over the chunks of a picture to the one with EXIF data. Their headers have a size and a name, in PNG
// in this order.
func orientationInChunk(c content, at int64, order binary.ByteOrder, name string, next func(at, size int64) int64) orientation {
	header := make([]byte, chunkHeader)
	for chunks := 0; chunks < maxEntries && at < c.size; chunks++ {
		if _, err := c.ReadAt(header, at); err != nil {
			return upright
		}
		found, size := string(header[:4]), int64(order.Uint32(header[4:]))
		if order == binary.BigEndian {
			found, size = string(header[4:]), int64(order.Uint32(header))
		}
		if found == name {
			exif := make([]byte, min(size, maxExif, c.size-at))
			n, _ := c.ReadAt(exif, at+chunkHeader) // what cannot be read has no orientation
			return orientationIn(bytes.TrimPrefix(exif[:n], []byte("Exif\x00\x00")))
		}
		at = next(at, size)
	}
	return upright
}
