package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

const (
	callTimeout = 30 * time.Second
	// signUpsAtOnce is as many password hashes as a small machine computes together.
	signUpsAtOnce = 2
)

var browser = &http.Client{Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: signUpsAtOnce}}

// account is somebody who is signed in.
type account struct {
	host, cookie, csrf string
	id                 string

	mu   sync.Mutex
	sent int // guarded by mu: idempotency keys used
}

// signUp makes accounts. A password costs what it should, so this is done before anything is measured.
func signUp(ctx context.Context, base string, n int) ([]*account, error) {
	accounts := make([]*account, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(signUpsAtOnce)
	for i := range accounts {
		group.Go(func() (err error) {
			accounts[i], err = newAccount(ctx, base)
			return err
		})
	}
	return accounts, group.Wait()
}

func newAccount(ctx context.Context, base string) (*account, error) {
	body, err := json.Marshal(map[string]string{
		"email": uuid.NewString() + "@example.org", "password": "a long enough pass phrase", "display_name": "Load",
	})
	if err != nil {
		return nil, err
	}
	a := &account{host: strings.TrimPrefix(base, "http://")}
	var session struct {
		Account struct {
			ID string `json:"account_id"`
		} `json:"account"`
		CSRF string `json:"csrf_token"`
	}
	header, err := call(ctx, http.MethodPost, base+"/auth/register", nil, body, http.StatusCreated, &session)
	if err != nil {
		return nil, fmt.Errorf("signing up: %w", err)
	}
	for _, cookie := range (&http.Response{Header: header}).Cookies() {
		if strings.HasSuffix(cookie.Name, "session") {
			a.cookie = cookie.Name + "=" + cookie.Value
		}
	}
	a.csrf, a.id = session.CSRF, session.Account.ID
	return a, nil
}

// call is one small request; a may be nil.
func call(ctx context.Context, method, url string, a *account, body []byte, status int, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a != nil {
		request.Header.Set("Cookie", a.cookie)
		request.Header.Set("X-CSRF-Token", a.csrf)
	}
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != status {
		return nil, fmt.Errorf("%s %s: %d, want %d: %.300s", method, request.URL.Path, response.StatusCode, status, text)
	}
	if into != nil {
		err = json.Unmarshal(text, into)
	}
	return response.Header, err
}
