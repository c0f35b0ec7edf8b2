package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"turnstone/cmd/turnstone/admin"
	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
)

// Program is what every command receives.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environment    map[string]string
	// WithDatabase opens the database of the installation for the duration of work.
	WithDatabase func(ctx context.Context, work func(*persistence.Stores) error) error
}

// callInternal sends a request to the internal listener of the running node and prints the response. The response has
// no time limit: following a turn takes as long as the turn is live, and Ctrl-C cancels ctx.
func (p *Program) callInternal(ctx context.Context, method, path string) error {
	config, _, err := settings.Load(p.Environment)
	if err != nil {
		return err
	}
	secret, err := config.SigningSecret()
	if err != nil {
		return err
	}
	token, err := admin.Token(secret)
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
		var failed admin.Error
		if json.NewDecoder(response.Body).Decode(&failed) != nil || failed.Detail == "" {
			failed.Detail = response.Status
		}
		return errors.New(failed.Detail)
	}
	_, err = io.Copy(p.Stdout, response.Body)
	return err
}
