package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"

	"turnstone/cmd/turnstone/settings"
)

type turnCommand struct {
	Show   turnShowCommand   `cmd:"" help:"Print the state of a turn."`
	Events turnEventsCommand `cmd:"" help:"Print the events of a turn, one per line."`
	Cancel turnCancelCommand `cmd:"" help:"Cancel a turn. The follow-ups queued in its conversation are held."`
}

type turnShowCommand struct {
	Turn string `arg:"" help:"Identifier (turn_…)."`
}

type turnEventsCommand struct {
	Turn   string `arg:"" help:"Identifier (turn_…)."`
	Follow bool   `help:"Continue until the turn ends."`
}

type turnCancelCommand struct {
	Turn  string `arg:"" help:"Identifier (turn_…)."`
	Force bool   `help:"End the turn at once. Use it if the node that owns the turn does not respond, or if the turn's log cannot be read."`
}

// Run prints the turn as JSON.
func (c *turnShowCommand) Run(ctx context.Context, p *program) error {
	return p.callInternal(ctx, http.MethodGet, "/admin/turns/"+c.Turn)
}

// Run prints the committed bytes of each event.
func (c *turnEventsCommand) Run(ctx context.Context, p *program) error {
	path := "/admin/turns/" + c.Turn + "/events"
	if c.Follow {
		path += "?follow=true"
	}
	return p.callInternal(ctx, http.MethodGet, path)
}

// Run returns after the cancel was stored durably.
func (c *turnCancelCommand) Run(ctx context.Context, p *program) error {
	path := "/admin/turns/" + c.Turn + "/cancel"
	if c.Force {
		path += "?force=true"
	}
	return p.callInternal(ctx, http.MethodPost, path)
}

// callInternal sends a request to the internal listener of the running node and prints the response. The response has
// no time limit: following a turn takes as long as the turn is live, and Ctrl-C cancels ctx.
func (p *program) callInternal(ctx context.Context, method, path string) error {
	config, _, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	secret, err := p.signingSecret(&config)
	if err != nil {
		return err
	}
	token, err := adminToken(secret)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+config.Service.InternalListen+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no turnstone responds at TURNSTONE_INTERNAL_LISTEN: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		var failed adminError
		if json.NewDecoder(response.Body).Decode(&failed) != nil || failed.Detail == "" {
			failed.Detail = response.Status
		}
		return errors.New(failed.Detail)
	}
	_, err = io.Copy(p.stdout, response.Body)
	return err
}

// signingSecret returns the configured secret that signs, or the one that dev generated in the data folder.
func (p *program) signingSecret(config *settings.Config) ([]byte, error) {
	if len(config.Access.Secret) > 0 {
		return config.Access.Secret[0], nil
	}
	text, err := settings.ReadSecret(filepath.Join(config.Service.DataDir, secretFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("TURNSTONE_SECRET is not set, and the data folder has no secret from turnstone dev")
	}
	return []byte(text), err
}
