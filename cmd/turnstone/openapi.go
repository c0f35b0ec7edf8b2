package main

import (
	ourhttp "turnstone/http"
)

type openAPICommand struct {
	Events bool `help:"Print the JSON Schema of the events instead."`
}

// Run prints what protocol/openapi.json and protocol/events.schema.json hold.
func (c *openAPICommand) Run(p *program) error {
	made := ourhttp.OpenAPI
	if c.Events {
		made = ourhttp.EventSchema
	}
	text, err := made()
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(text)
	return err
}
