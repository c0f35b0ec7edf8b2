package response

import (
	stdhttp "net/http"
	"strconv"
	"strings"
)

// ETagOf returns the ETag of a version: "v3", with its quotes, for version 3.
func ETagOf(version int64) string { return `"v` + strconv.FormatInt(version, 10) + `"` }

// Accepts reports whether the Accept-Encoding of a request allows an encoding. It supports the form that browsers send: names, with q=0
// for an encoding that is not accepted.
func Accepts(r *stdhttp.Request, encoding string) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(value, ",") {
			name, quality, weighed := strings.Cut(strings.ReplaceAll(item, " ", ""), ";q=")
			if strings.EqualFold(name, encoding) {
				weight, err := strconv.ParseFloat(quality, 64)
				return !weighed || err == nil && weight > 0
			}
		}
	}
	return false
}
