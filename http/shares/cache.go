package shares

import (
	"container/list"
	"sync"

	"turnstone/persistence/shares"
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

// pageCache keeps the pages that were read last. It does not know whether a share can still be read: a request asks the
// store first, so that a revoked, expired or suspended share is never served from here. Its methods may be called from any
// goroutine.
type pageCache struct {
	mu    sync.Mutex
	pages map[pageKey]*list.Element // guarded by mu
	order list.List                 // of cachedPage, the last one read first; guarded by mu
	size  int                       // guarded by mu
}

type cachedPage struct {
	key  pageKey
	body []byte
}

// get returns a page; nil: it is not cached. The caller must not change it.
func (c *pageCache) get(key pageKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.pages[key]
	if found == nil {
		return nil
	}
	c.order.MoveToFront(found)
	return found.Value.(cachedPage).body // the list has nothing else
}

// add adds a page, and removes those that were not read for the longest time. A page of more than half of the space is
// left out.
func (c *pageCache) add(key pageKey, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = map[pageKey]*list.Element{}
	}
	if c.pages[key] != nil || len(body) > maxCached/2 {
		return
	}
	c.pages[key] = c.order.PushFront(cachedPage{key, body})
	for c.size += len(body); c.size > maxCached; {
		oldest := c.order.Remove(c.order.Back()).(cachedPage) // the list has nothing else
		delete(c.pages, oldest.key)
		c.size -= len(oldest.body)
	}
}
