package verify

import (
	"encoding/json"

	"turnstone/protocol"
)

// Feed follows the account feed as one of its readers, over any number of connections. The zero value has read nothing.
type Feed struct {
	Cursor string // of the newest item

	read     map[string]bool
	versions map[string]int64 // the newest one of each resource, by kind and identifier
}

// Next reads an item: the id, the event and the data of its frame. It returns a Finding if the item is malformed, if the
// reader got its cursor before, or if it reports an older version of a resource than an item before it.
func (f *Feed) Next(id, event, data string) (item protocol.FeedItem, err error) {
	if err := json.Unmarshal([]byte(data), &item); err != nil || item.Type != event || id == "" {
		return item, found(Malformed, "event %s, id %s, data %s: %v", event, id, data, err)
	}
	f.Cursor = id
	if item.Type == protocol.FeedReset || f.read == nil {
		f.read, f.versions = map[string]bool{}, map[string]int64{}
	}
	if f.read[id] {
		return item, found(Repeated, "the feed has the cursor %s again: %s", id, data)
	}
	f.read[id] = true
	if item.Version != nil {
		resource := item.Kind() + " " + item.ID
		if before := f.versions[resource]; *item.Version < before {
			return item, found(Order, "the feed has version %d of %s after %d", *item.Version, resource, before)
		}
		f.versions[resource] = *item.Version
	}
	return item, nil
}
