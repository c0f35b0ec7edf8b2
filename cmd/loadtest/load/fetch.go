package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Fetch sends a request to a listener without sessions: of the model, of the baseline, or the internal one. A response
// with another status than 200 is an error.
func Fetch(ctx context.Context, method, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // the body was read, or its error is returned
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d: %.300s", method, request.URL.Path, response.StatusCode, text)
	}
	return text, err
}
