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
	Version        string // one line, for bundles
	// WithDatabase opens the database of the installation for the duration of work.
	WithDatabase func(ctx context.Context, work func(*persistence.Stores) error) error
}

// errUnreachable means that nothing accepted a connection at the internal address.
var errUnreachable = errors.New("no turnstone responds at TURNSTONE_INTERNAL_LISTEN")

// callInternal sends a request to the internal listener of the running node and prints the response. The response has
// no time limit: following a turn takes as long as the turn is live, and Ctrl-C cancels ctx.
func (p *Program) callInternal(ctx context.Context, method, path string) error {
	response, err := p.request(ctx, method, path)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(p.Stdout, response.Body)
	return err
}

// request sends a request to the internal listener. If the response is an error, it returns that error. The caller closes
// the body, which ends the connection.
func (p *Program) request(ctx context.Context, method, path string) (*http.Response, error) {
	config, _, err := settings.Load(p.Environment)
	if err != nil {
		return nil, err
	}
	secret, err := config.SigningSecret()
	if err != nil {
		return nil, err
	}
	token, err := admin.Token(secret)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+config.Service.InternalListen+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer func() { _ = response.Body.Close() }()
		var failed struct { // of a problem document
			Detail string `json:"detail"`
		}
		if json.NewDecoder(response.Body).Decode(&failed) != nil || failed.Detail == "" {
			failed.Detail = response.Status
		}
		return nil, errors.New(failed.Detail)
	}
	return response, nil
}
