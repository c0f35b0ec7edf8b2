package routing

import "sync"

// minContext is the smallest context, in tokens, that the service adapts to.
const minContext = 1024

// Contexts are the sizes of contexts that models reported when a request was too long. Its zero value is ready to use. It
// has one entry for each route at most, and is lost when the process ends.
type Contexts struct {
	mu     sync.Mutex
	tokens map[Key]int // guarded by mu
}

// Learn notes that a request was too long for the model of a route. reported is the size of its context in tokens; 0 if the
// provider did not report it: half of the current size is assumed.
func (c *Contexts) Learn(route Route, reported int) {
	current := c.Limit(route).ContextTokens
	if reported <= 0 || reported >= current {
		reported = current / 2
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = map[Key]int{}
	}
	c.tokens[route.Key()] = max(minContext, reported)
}

// Limit returns a route with the known size of its context. The answer gets at most a quarter of a smaller one.
func (c *Contexts) Limit(route Route) Route {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.tokens[route.Key()]; known > 0 && known < route.ContextTokens {
		route.ContextTokens = known
		route.MaxOutputTokens = min(route.MaxOutputTokens, known/4)
	}
	return route
}
