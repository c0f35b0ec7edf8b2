package page

import (
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"turnstone/providers/outbound"
)

// mediaTypeOf returns the media type of a response. The content decides if the server does not say it.
func mediaTypeOf(response *outbound.Response) string {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || mediaType == "application/octet-stream" || mediaType == "binary/octet-stream" || !strings.Contains(mediaType, "/") {
		mediaType, _, _ = mime.ParseMediaType(http.DetectContentType(response.Body))
	}
	return mediaType
}

// detectionSample is the number of bytes by which the encoding of a text is recognized.
const detectionSample = 64 << 10

// decoded returns a text as UTF-8. The encoding is what a byte order mark, the server, or the page says, else UTF-8 if the
// text is valid as such, else the one that its bytes look like.
func decoded(body []byte, contentType string, isHTML bool) string {
	head := body[:min(len(body), 1024)]
	if !isHTML {
		head = head[:min(len(head), 4)] // a byte order mark
	}
	from, name, certain := charset.DetermineEncoding(head, contentType)
	if !certain {
		from, name = detected(body)
	}
	if name == "utf-8" {
		return strings.TrimPrefix(strings.ToValidUTF8(string(body), "\ufffd"), "\ufeff")
	}
	text, err := from.NewDecoder().Bytes(body)
	if err != nil {
		return strings.ToValidUTF8(string(body), "\ufffd")
	}
	return strings.TrimPrefix(string(text), "\ufeff")
}

// detected returns the encoding that bytes without a declaration look like.
func detected(body []byte) (encoding.Encoding, string) {
	if utf8.Valid(body) || validExceptEnd(body) {
		return encoding.Nop, "utf-8"
	}
	if best, err := chardet.NewTextDetector().DetectBest(body[:min(len(body), detectionSample)]); err == nil {
		if from, name := charset.Lookup(best.Charset); from != nil {
			return from, name
		}
	}
	return charset.Lookup("windows-1252")
}

// validExceptEnd reports whether only the last character is not valid, because the text was cut.
func validExceptEnd(body []byte) bool {
	for n := 1; n < utf8.UTFMax && n <= len(body); n++ {
		if rest := body[len(body)-n:]; utf8.RuneStart(rest[0]) {
			return !utf8.FullRune(rest) && utf8.Valid(body[:len(body)-n])
		}
	}
	return false
}
