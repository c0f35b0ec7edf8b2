package operate

import (
	"context"
	"net/http"
)

// Turn has the commands for turns.
type Turn struct {
	Show   turnShow   `cmd:"" help:"Print the state of a turn."`
	Events turnEvents `cmd:"" help:"Print the events of a turn, one per line."`
	Cancel turnCancel `cmd:"" help:"Cancel a turn. The follow-ups queued in its conversation are held."`
}

type turnShow struct {
	Turn string `arg:"" help:"Identifier (turn_…)."`
}

type turnEvents struct {
	Turn   string `arg:"" help:"Identifier (turn_…)."`
	Follow bool   `help:"Continue until the turn ends."`
}

type turnCancel struct {
	Turn  string `arg:"" help:"Identifier (turn_…)."`
	Force bool   `help:"End the turn at once. Use it if the node that owns the turn does not respond, or if the turn's log cannot be read."`
}

// Run prints the turn as JSON.
func (c *turnShow) Run(ctx context.Context, p *Program) error {
	return p.callInternal(ctx, http.MethodGet, "/admin/turns/"+c.Turn)
}

// Run prints the committed bytes of each event.
func (c *turnEvents) Run(ctx context.Context, p *Program) error {
	path := "/admin/turns/" + c.Turn + "/events"
	if c.Follow {
		path += "?follow=true"
	}
	return p.callInternal(ctx, http.MethodGet, path)
}

// Run returns after the cancel was stored durably.
func (c *turnCancel) Run(ctx context.Context, p *Program) error {
	path := "/admin/turns/" + c.Turn + "/cancel"
	if c.Force {
		path += "?force=true"
	}
	return p.callInternal(ctx, http.MethodPost, path)
}
