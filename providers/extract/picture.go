package extract

import (
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"turnstone/protocol"
)

// pictureFormat reads the pictures of a media type.
type pictureFormat struct {
	header func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // of an animation, its first picture
	turn   func(content) orientation            // nil: the format has none
}

// pictures are the formats with a reader. The others have neither a size nor a thumbnail: for HEIC there is no library under
// a permissive licence.
var pictures = map[string]pictureFormat{
	"image/png":  {png.DecodeConfig, png.Decode, orientationOfPNG},
	"image/jpeg": {jpeg.DecodeConfig, decodeJPEG, orientationOf},
	"image/gif":  {gif.DecodeConfig, gif.Decode, nil},
	"image/webp": {webp.DecodeConfig, decodeWebP, orientationOfWebP},
	"image/bmp":  {bmp.DecodeConfig, bmp.Decode, nil},
	"image/tiff": {tiff.DecodeConfig, tiff.Decode, orientationOfTIFF},
}

// decodeJPEG decodes a picture, also one without the mark of its end, which browsers do not need either.
func decodeJPEG(r io.Reader) (image.Image, error) {
	const end = "\xFF\xD9"
	return jpeg.Decode(io.MultiReader(r, strings.NewReader(end)))
}

// decodeCut decodes a JPEG that ends within its data, as browsers do: what is missing has the color of what precedes it. Zeros decode as
// pixels without a change.
func decodeCut(r io.Reader, header image.Config) (image.Image, error) {
	const bytesPerPixel, further = 4, 1 << 16 // more than any picture needs
	missing := io.LimitReader(zeros{}, int64(header.Width)*int64(header.Height)*bytesPerPixel+further)
	return decodeJPEG(io.MultiReader(r, missing))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// whole decodes a picture; cut: its end is missing.
func (f *pictureFormat) whole(c content, mediaType string, header image.Config) (whole image.Image, cut bool, err error) {
	whole, err = f.decode(c.reader())
	if err != nil && mediaType == "image/jpeg" && !isUnsupported(err) {
		if completed, failed := decodeCut(c.reader(), header); failed == nil {
			return completed, true, nil
		}
	}
	return whole, false, err
}

// readPicture reads the size of a picture, as it is shown, and makes its renditions. A picture that is too large, or that
// has a feature without a reader, has a size only.
func readPicture(c content, mediaType string) *protocol.Extraction {
	format, known := pictures[mediaType]
	if !known {
		return &protocol.Extraction{State: protocol.TextNone}
	}
	header, err := format.header(c.reader())
	if err != nil || header.Width <= 0 || header.Height <= 0 {
		return failed(errDamaged)
	}
	x := &protocol.Extraction{State: protocol.TextNone, Width: header.Width, Height: header.Height}
	turn := upright
	if format.turn != nil {
		turn = format.turn(c)
	}
	if pages := pagesOfTIFF(c); mediaType == "image/tiff" && pages > 1 {
		x.Notes = []protocol.TextNote{{Kind: protocol.NoteFirstPage, Count: pages}}
	}
	if turn.swapsSides() {
		x.Width, x.Height = x.Height, x.Width
	}
	if max(x.Width, x.Height) > maxSide || x.Width*x.Height > maxPixels {
		return x
	}
	whole, cut, err := format.whole(c, mediaType, header)
	if cut {
		x.Notes = append(x.Notes, protocol.TextNote{Kind: protocol.NoteMissingParts, Count: 1})
	}
	switch {
	case isUnsupported(err):
		return x
	case err != nil:
		return failed(errDamaged)
	}
	larger := turn.apply(scaled(onCanvas(whole, header), pictureSide))
	if x.Picture, err = rendition(larger, pictureSide, maxPicture); err == nil {
		x.Thumbnail, err = rendition(larger, thumbnailSide, maxThumbnail)
	}
	if err != nil {
		return failed(err)
	}
	return x
}

// isUnsupported reports whether a picture is correct, and only its reader cannot read it.
func isUnsupported(err error) bool {
	var ofJPEG jpeg.UnsupportedError
	var ofPNG png.UnsupportedError
	var ofTIFF tiff.UnsupportedError
	return errors.As(err, &ofJPEG) || errors.As(err, &ofPNG) || errors.As(err, &ofTIFF) || errors.Is(err, bmp.ErrUnsupported)
}

// onCanvas returns the first picture of an animation at its place, if it does not fill the whole.
func onCanvas(of image.Image, header image.Config) image.Image {
	whole := image.Rect(0, 0, header.Width, header.Height)
	if of.Bounds() == whole {
		return of
	}
	canvas := image.NewRGBA(whole)
	draw.Draw(canvas, of.Bounds(), of, of.Bounds().Min, draw.Src)
	return canvas
}

// prepared prints a picture as PNG, upright and of the size at which text is recognized.
func prepared(c content, mediaType string, to io.Writer) error {
	format, known := pictures[mediaType]
	if !known {
		return errDamaged
	}
	header, err := format.header(c.reader())
	if err != nil || header.Width*header.Height > maxPixels {
		return errComplex
	}
	turn := upright
	if format.turn != nil {
		turn = format.turn(c)
	}
	whole, _, err := format.whole(c, mediaType, header)
	if err != nil {
		return err
	}
	shown := turn.apply(scaled(onCanvas(whole, header), recognizedSide))
	gray := image.NewGray(shown.Bounds())
	draw.Draw(gray, gray.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(gray, gray.Bounds(), shown, image.Point{}, draw.Over)
	return png.Encode(to, gray)
}
