// Package transcription turns speech into text with a server that has the API of OpenAI (POST /audio/transcriptions).
//
// A recording is passed on while it is received; nothing of it is stored or logged.
package transcription

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

const (
	maxAnswer  = 1 << 20 // bytes; an hour of speech has about 60 kB
	maxHeader  = 64 << 10
	retryAfter = 5 // seconds
)

// The times that a server has: to accept the connection, to answer once it has the whole recording, and for all of it.
var (
	connectTimeout = timelimit.Of(2 * time.Second)
	answerTimeout  = timelimit.Of(time.Minute)
	totalTimeout   = timelimit.Of(5 * time.Minute)
)

// Options configure a client.
type Options struct {
	URL   string // the address before /audio/transcriptions, for example https://api.openai.com/v1
	Key   string // "": none
	Model string
	Log   *zap.Logger // nil: nothing is logged
	// Timeout replaces the time to answer in tests; 0: the default.
	Timeout time.Duration
}

// Client sends recordings to a server. Its methods may be called from any goroutine.
type Client struct {
	options Options
	client  *http.Client
}

// New returns a client.
func New(options Options) *Client {
	if options.Log == nil {
		options.Log = zap.NewNop()
	}
	if options.Timeout == 0 {
		options.Timeout = answerTimeout
	}
	return &Client{options: options, client: &http.Client{
		Timeout: totalTimeout,
		Transport: &http.Transport{
			Proxy: nil, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader, ResponseHeaderTimeout: options.Timeout,
			DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext, TLSHandshakeTimeout: connectTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it could carry the key elsewhere
	}}
}

// Transcribe returns the text of a recording. size is its size in bytes, -1 if it is unknown. language is that of the speaker as
// two or three letters; "": the server finds out. An error of audio is returned as it is. A server that does not answer with a
// text is protocol.CodeUnavailable, and one that cannot read the recording is protocol.CodeInvalidBody.
func (c *Client) Transcribe(ctx context.Context, audio io.Reader, size int64, extension, language string) (string, error) {
	head, tail, media, err := c.form(extension, language)
	if err != nil {
		return "", err
	}
	source := &source{from: audio}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.options.URL, "/")+"/audio/transcriptions",
		io.MultiReader(bytes.NewReader(head), source, bytes.NewReader(tail)))
	if err != nil {
		return "", c.unavailable("the request cannot be written", err)
	}
	request.ContentLength = -1
	if size >= 0 {
		request.ContentLength = int64(len(head)) + size + int64(len(tail))
	}
	request.Header.Set("Content-Type", media)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "Turnstone")
	if c.options.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.Key)
	}
	response, err := c.client.Do(request)
	if err != nil {
		if failed := source.failure(); failed != nil {
			return "", failed
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", c.unavailable("the server cannot be reached or does not answer", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if err := c.refused(response.StatusCode); err != nil {
		return "", err
	}
	return c.text(ctx, response.Body)
}

// form returns what precedes and what follows the recording in the body of a request, and its media type.
func (c *Client) form(extension, language string) (head, tail []byte, media string, err error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	fields := [][2]string{{"model", c.options.Model}, {"response_format", "json"}}
	if language != "" {
		fields = append(fields, [2]string{"language", language})
	}
	for _, field := range fields {
		if err := form.WriteField(field[0], field[1]); err != nil {
			return nil, nil, "", fmt.Errorf("writing a form: %w", err)
		}
	}
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", fmt.Sprintf(`form-data; name="file"; filename="audio.%s"`, extension))
	header.Set("Content-Type", "application/octet-stream")
	if _, err := form.CreatePart(header); err != nil {
		return nil, nil, "", fmt.Errorf("writing a form: %w", err)
	}
	head = bytes.Clone(body.Bytes())
	body.Reset()
	if err := form.Close(); err != nil {
		return nil, nil, "", fmt.Errorf("writing a form: %w", err)
	}
	return head, body.Bytes(), form.FormDataContentType(), nil
}

// refused returns an error for a status that is not a success.
func (c *Client) refused(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return protocol.Errorf(protocol.CodeInvalidBody, "The recording cannot be read.")
	case http.StatusRequestEntityTooLarge:
		return protocol.Errorf(protocol.CodeTooLarge, "The recording is too long.")
	}
	return c.unavailable("the server refuses", fmt.Errorf("status %d", status))
}

// text reads the answer of the server.
func (c *Client) text(ctx context.Context, from io.Reader) (string, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", c.unavailable("the answer cannot be read", err)
	case len(body) > maxAnswer:
		return "", c.unavailable("the answer is too long", nil)
	}
	var answer struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Text == nil {
		return "", c.unavailable("the answer has no text", err)
	}
	return strings.TrimSpace(strings.ReplaceAll(*answer.Text, "\x00", "")), nil
}

// unavailable logs why there is no text. Neither the recording nor an answer is logged.
func (c *Client) unavailable(reason string, err error) error {
	c.options.Log.Warn("transcription failed", zap.String("reason", reason), zap.Error(err))
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "Speech cannot be turned into text at the moment. Try again later.", RetryAfter: retryAfter, Err: err}
}

// source reads a recording and keeps its error, which the transport does not return in every case.
type source struct {
	from io.Reader

	mu  sync.Mutex
	err error // guarded by mu
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	}
	return n, err
}

// failure returns the error of the recording; nil: it had none.
func (s *source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
