package model

import (
	"bytes"
	"context"
	"maps"
	"net/http"
)

// request returns a request with body, encoded as JSON, to a path below the base URL.
func (c *Client) request(ctx context.Context, model, path string, header http.Header, body any) (*http.Request, error) {
	encoded, err := c.encode(model, body)
	if err != nil {
		return nil, Rejected(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Address(path), bytes.NewReader(encoded))
	if err != nil {
		return nil, Rejected(err)
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	return request, nil
}

// Address returns the address of a path below the base URL.
func (c *Client) Address(path string) string { return c.base.JoinPath(path).String() }
