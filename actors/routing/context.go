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

// Learn notes the size of the context of a route, in tokens, which the provider reports when a request is too long. It reports
// whether the size is news: smaller than the known one. A request that is too long says nothing about others.
func (c *Contexts) Learn(route Route, reported int) bool {
	if reported <= 0 || reported >= c.Limit(route).ContextTokens {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = map[Key]int{}
	}
	c.tokens[route.Key()] = max(minContext, reported)
	return true
}

// Limit returns a route with the known size of its context.
func (c *Contexts) Limit(route Route) Route {
	c.mu.Lock()
	defer c.mu.Unlock()
	return route.within(c.tokens[route.Key()])
}

// Shorter returns a route for the repetition of a request that was too long for this one: with half of its context.
func (r Route) Shorter() Route { return r.within(max(minContext, r.ContextTokens/2)) }

// within returns a route with at most tokens of context; 0: unknown. The answer gets at most a quarter of a smaller one.
func (r Route) within(tokens int) Route {
	if tokens > 0 && tokens < r.ContextTokens {
		r.ContextTokens = tokens
		r.MaxOutputTokens = min(r.MaxOutputTokens, tokens/4)
	}
	return r
}
