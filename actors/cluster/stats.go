package cluster

// Stats are the numbers of relays and feeds of a node.
type Stats struct{ Relays, Feeds int }

// Stats returns the current numbers.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{Relays: len(h.relays), Feeds: len(h.feeds)}
}
