package open

import (
	"context"
	"errors"
	"fmt"

	"turnstone/actors/llm"
)

// Route is a client with the name that requests call it by.
type Route struct {
	Name   string
	Config Config
}

// Routed is a model with several clients. Each request names the one that makes the call.
type Routed struct {
	names  []string
	models map[string]llm.Model
}

var _ llm.Model = (*Routed)(nil)

// Models returns the clients of routes, of which there is at least one. Names are unique.
func Models(routes []Route) (*Routed, error) {
	m := &Routed{models: map[string]llm.Model{}}
	for _, route := range routes {
		client, err := Model(route.Config)
		if err != nil {
			return nil, fmt.Errorf("the route %q: %w", route.Name, err)
		}
		m.names, m.models[route.Name] = append(m.names, route.Name), client
	}
	return m, nil
}

// Lessons returns what the provider's refusals taught about the model of a route, as sentences for operators.
func (m *Routed) Lessons(route, model string) []string {
	if client, is := m.models[route].(interface{ Lessons(model string) []string }); is {
		return client.Lessons(model)
	}
	return nil
}

// Stream implements llm.Model. A request without the name of a route is for the first.
func (m *Routed) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	client := m.models[request.Route]
	if client == nil {
		client = m.models[m.names[0]]
	}
	return client.Stream(ctx, request, func(chunk llm.Chunk) error {
		if chunk.Kind == llm.ChunkOpaque {
			chunk.Owner = client.Family()
		}
		return emit(chunk)
	})
}

// Continues implements llm.Model.
func (m *Routed) Continues() bool {
	for _, client := range m.models {
		if !client.Continues() {
			return false
		}
	}
	return true
}

// Ready implements llm.Model. It checks the routes in turn until one is ready.
func (m *Routed) Ready(ctx context.Context) error {
	var failures []error
	for _, name := range m.names {
		err := m.models[name].Ready(ctx)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("the route %q: %w", name, err))
	}
	return errors.Join(failures...)
}

// Family implements llm.Model: it is the family of the first route.
func (m *Routed) Family() string { return m.models[m.names[0]].Family() }
