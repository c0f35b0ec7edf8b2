package extract

import (
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"turnstone/protocol"
)

// pictureFormat reads the pictures of a media type.
type pictureFormat struct {
	header func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // of an animation, its first picture
}

// pictures are the formats with a reader. The others have neither a size nor a thumbnail: for HEIC there is no library under
// a permissive licence.
var pictures = map[string]pictureFormat{
	"image/png":  {png.DecodeConfig, png.Decode},
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"image/gif":  {gif.DecodeConfig, gif.Decode},
	"image/webp": {webp.DecodeConfig, webp.Decode},
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
	if mediaType == "image/jpeg" {
		turn = orientationOf(c)
	}
	if turn.swapsSides() {
		x.Width, x.Height = x.Height, x.Width
	}
	if max(x.Width, x.Height) > maxSide || x.Width*x.Height > maxPixels {
		return x
	}
	whole, err := format.decode(c.reader())
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
	return errors.As(err, &ofJPEG) || errors.As(err, &ofPNG)
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
