package response

import "strconv"

// ETagOf returns the ETag of a version: "v3", with its quotes, for version 3.
func ETagOf(version int64) string { return `"v` + strconv.FormatInt(version, 10) + `"` }
