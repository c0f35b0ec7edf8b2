package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"turnstone/actors"
)

// The codes of actors.ModelError.
const (
	codeUnavailable     = "model_unavailable"
	codeRateLimited     = "model_rate_limited"
	codeRejected        = "model_rejected"
	codeUnauthorized    = "model_unauthorized"
	codeProtocol        = "model_protocol"
	codeContextExceeded = "model_context_exceeded"
)

// maxErrorWord bounds what is kept of a provider's error for the log.
const maxErrorWord = 160

func unavailable(err error) *actors.ModelError {
	return &actors.ModelError{Code: codeUnavailable, Retryable: true, Err: err}
}

func protocolFailure(err error) *actors.ModelError {
	return &actors.ModelError{Code: codeProtocol, Err: err}
}

// Rejected is for requests that cannot even be put into the provider's wire format.
func Rejected(err error) error { return &actors.ModelError{Code: codeRejected, Err: err} }

// Protocol is for events that the wire format does not allow.
func Protocol(err error) error { return protocolFailure(err) }

// Unavailable is for an end that the provider calls its own failure.
func Unavailable(err error) error { return unavailable(err) }

// transportFailure tells a peer that does not speak HTTP from one that cannot be reached. net/http has no types for
// the former, only texts.
func transportFailure(err error) *actors.ModelError {
	text := err.Error()
	if strings.Contains(text, "malformed HTTP") || strings.Contains(text, "response headers exceeded") {
		return protocolFailure(err)
	}
	return unavailable(fmt.Errorf("reaching the model provider: %w", err))
}

// providerError is what vendors and those who copy them put into a refusal or an error event:
// {"error": {...}}, {"error": "text"}, {"type": "error", "error": {...}} or the fields at the top.
type providerError struct {
	Type    string
	Code    string
	Param   string
	Message string
}

func (e providerError) given() bool { return e.Type != "" || e.Code != "" || e.Message != "" }

func readProviderError(body []byte) providerError {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Type    any             `json:"type"`
		Code    any             `json:"code"`
		Param   any             `json:"param"`
		Message any             `json:"message"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return providerError{}
	}
	if inner := bytes.TrimSpace(outer.Error); len(inner) > 0 && inner[0] == '{' {
		return readProviderError(inner)
	} else if len(inner) > 0 && inner[0] == '"' {
		outer.Message = strings.Trim(string(inner), `"`)
	}
	return providerError{Type: word(outer.Type), Code: word(outer.Code), Param: word(outer.Param), Message: word(outer.Message)}
}

// word takes codes that are strings or numbers, and nothing else.
func word(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

// contextExceeded knows the message where there is no code of its own (Anthropic, vLLM, gateways).
var contextExceeded = regexp.MustCompile(
	`(?i)prompt is too long|maximum context|context[ _](length|window|size)|too many (input )?tokens|input is too long`)

// ProviderFailure classifies a refusal; status 0 stands for an error event inside a stream that began well.
func ProviderFailure(status int, header http.Header, body []byte) *actors.ModelError {
	failure := readProviderError(body).failure(status)
	failure.RetryAfter = retryAfter(header)
	return failure
}

func (e providerError) failure(status int) *actors.ModelError {
	failure := &actors.ModelError{Code: e.code(status), Err: e.forLog(status)}
	switch failure.Code {
	case codeUnavailable:
		failure.Retryable = true
	case codeRateLimited:
		failure.Retryable = e.Code != "insufficient_quota" // an empty account does not fill by asking again
	}
	return failure
}

func (e providerError) code(status int) string {
	if status == 0 {
		status = e.impliedStatus()
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return codeUnauthorized
	case status == http.StatusTooManyRequests:
		return codeRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return codeUnavailable
	case status < 400: // a redirect, which is never followed
		return codeProtocol
	case status == http.StatusRequestEntityTooLarge, e.Code == "context_length_exceeded",
		e.Type == "exceed_context_size_error", contextExceeded.MatchString(e.Message):
		return codeContextExceeded
	default:
		return codeRejected
	}
}

// impliedStatus reads the kind of an error event, which has no status line.
func (e providerError) impliedStatus() int {
	if status, err := strconv.Atoi(e.Code); err == nil && status >= 400 && status < 600 {
		return status
	}
	kind := e.Type + " " + e.Code
	switch {
	case strings.Contains(kind, "rate_limit"), strings.Contains(kind, "insufficient_quota"):
		return http.StatusTooManyRequests
	case strings.Contains(kind, "authentication"), strings.Contains(kind, "permission"), strings.Contains(kind, "invalid_api_key"):
		return http.StatusUnauthorized
	case strings.Contains(kind, "invalid"), strings.Contains(kind, "context"), contextExceeded.MatchString(e.Message):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// forLog names the error by its short words. The message may repeat what a user wrote, so it is kept for one status
// only: 404 names the model or the path that does not exist.
func (e providerError) forLog(status int) error {
	words := []string{"the model provider answered"}
	if status > 0 {
		words = append(words, strconv.Itoa(status))
	}
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value[:min(len(value), maxErrorWord)])
		}
	}
	add("type", e.Type)
	add("code", e.Code)
	add("param", e.Param)
	if status == http.StatusNotFound {
		add("message", e.Message)
	}
	return errors.New(strings.Join(words, " "))
}

// retryAfter reads milliseconds (OpenAI), seconds or a date.
func retryAfter(header http.Header) time.Duration {
	for name, unit := range map[string]time.Duration{"Retry-After-Ms": time.Millisecond, "Retry-After": time.Second} {
		value := header.Get(name)
		if number, err := strconv.ParseFloat(value, 64); err == nil && number >= 0 && number < 1e9 {
			return time.Duration(number * float64(unit))
		}
		if at, err := http.ParseTime(value); err == nil {
			return max(0, time.Until(at))
		}
	}
	return 0
}
