package page

import (
	"mime"
	"net/http"
	"strings"

	htmlcharset "golang.org/x/net/html/charset"

	"turnstone/providers/charset"
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

// decoded returns a text as UTF-8. The encoding is what a byte order mark, the server, or the page says, else UTF-8 if the
// text is valid as such, else the one that its bytes look like.
func decoded(body []byte, contentType string, isHTML bool) string {
	head := body[:min(len(body), 1024)]
	if !isHTML {
		head = head[:min(len(head), 4)] // a byte order mark
	}
	from, name, certain := htmlcharset.DetermineEncoding(head, contentType)
	if !certain {
		detect := charset.Detect
		if isHTML {
			detect = charset.DetectMarkup
		}
		return detect(body).Decode(body)
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
