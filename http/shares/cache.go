package shares

import (
	"turnstone/persistence/shares"
	"turnstone/protocol/recent"
)

const maxCached = 16 << 20 // bytes of pages

// pageKey names a rendered page. A share never changes, except that its files can be deleted, so neither does its page in a
// language.
type pageKey struct {
	share    shares.Ref
	page     int
	files    uint64 // bit n: the share has the file n
	language string
}

// newPageCache returns a cache of the pages that were read last. It does not know whether a share can still be read: a request
// asks the store first, so that a revoked, expired or suspended share is never served from it.
func newPageCache() *recent.Cache[pageKey, []byte] {
	return recent.New[pageKey, []byte](maxCached, 0)
}
