package turnlog

import "bytes"

// Picture is a picture of a message, encoded again by the service: JPEG or PNG.
type Picture struct {
	MediaType string
	Content   []byte
}

// NewPicture returns a picture of the type that its first bytes show.
func NewPicture(content []byte) Picture {
	if bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")) {
		return Picture{"image/png", content}
	}
	return Picture{"image/jpeg", content}
}
