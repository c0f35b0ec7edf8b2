package extract

import (
	"image"
	_ "image/gif"  // registers the format
	_ "image/jpeg" // registers the format
	_ "image/png"  // registers the format
	"strings"

	_ "golang.org/x/image/webp" // registers the format

	"turnstone/protocol"
)

// readPicture reads the width and the height of a picture from its header. The formats without a reader have none.
func readPicture(c content, mediaType string) *protocol.Extraction {
	format, known := strings.CutPrefix(mediaType, "image/")
	switch format {
	case "png", "jpeg", "gif", "webp":
	default:
		known = false
	}
	if !known {
		return &protocol.Extraction{State: protocol.TextNone}
	}
	header, found, err := image.DecodeConfig(c.reader())
	if err != nil || found != format || header.Width <= 0 || header.Height <= 0 {
		return failed(errDamaged)
	}
	return &protocol.Extraction{State: protocol.TextNone, Width: header.Width, Height: header.Height}
}
