package main

import (
	ourhttp "turnstone/http"
)

type openAPICommand struct {
	Events bool `help:"Print the JSON Schema of the events instead."`
}

// Run prints the content of protocol/openapi.json, or of protocol/events.schema.json with --events.
func (c *openAPICommand) Run(p *program) error {
	build := ourhttp.OpenAPI
	if c.Events {
		build = ourhttp.EventSchema
	}
	text, err := build()
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(text)
	return err
}
