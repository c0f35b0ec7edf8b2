package cluster

// Stats are the numbers of relays and sources of a node.
type Stats struct{ Relays, Sources int }

// Stats returns the current numbers.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{Relays: len(h.relays), Sources: len(h.sources)}
}
