package imports

import "context"

// Sweep continues what was left unfinished.
func (s *Store) Sweep(ctx context.Context) error { return s.sweep(ctx) }
