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
)

type turnCommand struct {
	Show   turnShowCommand   `cmd:"" help:"Print where a turn stands."`
	Events turnEventsCommand `cmd:"" help:"Print the events of a turn, one a line."`
	Cancel turnCancelCommand `cmd:"" help:"Cancel a turn; the queue of its conversation is held."`
}

type turnShowCommand struct {
	Turn string `arg:"" help:"Identifier (turn_…)."`
}

type turnEventsCommand struct {
	Turn   string `arg:"" help:"Identifier (turn_…)."`
	Follow bool   `help:"Go on until the turn ends."`
}

type turnCancelCommand struct {
	Turn  string `arg:"" help:"Identifier (turn_…)."`
	Force bool   `help:"End it at once, for a turn whose owner does not answer or whose log cannot be read."`
}

// Run prints JSON.
func (c *turnShowCommand) Run(ctx context.Context, p *program) error {
	return p.ask(ctx, http.MethodGet, "/admin/turns/"+c.Turn)
}

// Run prints the committed bytes of each event.
func (c *turnEventsCommand) Run(ctx context.Context, p *program) error {
	path := "/admin/turns/" + c.Turn + "/events"
	if c.Follow {
		path += "?follow=true"
	}
	return p.ask(ctx, http.MethodGet, path)
}

// Run answers after the cancel was made durable.
func (c *turnCancelCommand) Run(ctx context.Context, p *program) error {
	path := "/admin/turns/" + c.Turn + "/cancel"
	if c.Force {
		path += "?force=true"
	}
	return p.ask(ctx, http.MethodPost, path)
}

// ask sends a request to the internal listener of the running node and prints its answer. There is no limit to how long
// an answer takes: a turn is followed for as long as it lives, and Ctrl-C ends the context.
func (p *program) ask(ctx context.Context, method, path string) error {
	config, _, err := loadConfig(p.environment)
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
		return fmt.Errorf("no turnstone answers at TURNSTONE_INTERNAL_LISTEN: %w", err)
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

// signingSecret is the configured one, or the one that dev made in the data folder.
func (p *program) signingSecret(config *Config) ([]byte, error) {
	if len(config.Access.Secret) > 0 {
		return config.Access.Secret[0], nil
	}
	text, err := readSecret(filepath.Join(config.Service.DataDir, secretFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("TURNSTONE_SECRET is not set, and turnstone dev made none in the data folder")
	}
	return []byte(text), err
}
