package transfer

import (
	stdhttp "net/http"
	"time"
)

// validators identify a content (RFC 9110, section 8.8). The content of a file never changes.
type validators struct {
	etag     string
	modified time.Time // to the second, as the header has it
}

func validatorsOf(file *File) validators {
	return validators{`"` + file.SHA256 + `"`, file.CreatedAt.UTC().Truncate(time.Second)}
}

func (v validators) write(header stdhttp.Header) {
	header.Set("ETag", v.etag)
	header.Set("Last-Modified", v.modified.Format(stdhttp.TimeFormat))
}

// same reports whether If-Range names exactly the content.
func (v validators) same(ifRange string) bool {
	if at, err := stdhttp.ParseTime(ifRange); err == nil {
		return v.modified.Equal(at)
	}
	return ifRange == v.etag
}
