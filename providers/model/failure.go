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

	"turnstone/actors/llm"
	"turnstone/protocol"
)

// maxErrorWord limits the bytes of each field of a provider's error in the log.
const maxErrorWord = 160

func unavailable(err error) *llm.Error {
	return &llm.Error{Code: protocol.ModelUnavailable, Retryable: true, Err: err}
}

func protocolFailure(err error) *llm.Error {
	return &llm.Error{Code: protocol.ModelProtocol, Err: err}
}

// Rejected returns the error for a request that cannot be encoded in the provider's wire format.
func Rejected(err error) error { return &llm.Error{Code: protocol.ModelRejected, Err: err} }

// Protocol returns the error for an event that the wire format does not allow.
func Protocol(err error) error { return protocolFailure(err) }

// Unavailable returns the error for an answer that the provider ended because of its own failure.
func Unavailable(err error) error { return unavailable(err) }

// transportFailure distinguishes a peer that does not speak HTTP from one that cannot be reached. net/http has no error
// types for the former, only texts.
func transportFailure(err error) *llm.Error {
	text := err.Error()
	if strings.Contains(text, "malformed HTTP") || strings.Contains(text, "response headers exceeded") {
		return protocolFailure(err)
	}
	return unavailable(fmt.Errorf("reaching the model provider: %w", err))
}

// providerError is the content of an error response or error event of vendors and compatible servers: {"error": {...}},
// {"error": "text"}, {"type": "error", "error": {...}} or the fields at the top level.
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
	return providerError{Type: scalarText(outer.Type), Code: scalarText(outer.Code), Param: scalarText(outer.Param), Message: scalarText(outer.Message)}
}

// scalarText returns a string or a number as text, and "" for any other value.
func scalarText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

// contextExceeded matches the message of providers that have no code for an exceeded context (Anthropic, vLLM,
// gateways).
var contextExceeded = regexp.MustCompile(
	`(?i)prompt is too long|maximum context|context[ _](length|window|size)|too many (input )?tokens|input is too long`)

// ProviderFailure classifies an error response. Status 0 means an error event in a stream that started normally.
func ProviderFailure(status int, header http.Header, body []byte) *llm.Error {
	failure := readProviderError(body).failure(status)
	failure.RetryAfter = retryAfter(header)
	return failure
}

func (e providerError) failure(status int) *llm.Error {
	failure := &llm.Error{Code: e.code(status), Err: e.forLog(status)}
	switch failure.Code {
	case protocol.ModelUnavailable:
		failure.Retryable = true
	case protocol.ModelRateLimited:
		failure.Retryable = e.Code != "insufficient_quota" // a retry does not help if the quota is used up
	}
	return failure
}

func (e providerError) code(status int) protocol.TurnErrorCode {
	if status == 0 {
		status = e.impliedStatus()
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return protocol.ModelUnauthorized
	case status == http.StatusTooManyRequests:
		return protocol.ModelRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return protocol.ModelUnavailable
	case status < 400: // a redirect, which is never followed
		return protocol.ModelProtocol
	case status == http.StatusRequestEntityTooLarge, e.Code == "context_length_exceeded",
		e.Type == "exceed_context_size_error", contextExceeded.MatchString(e.Message):
		return protocol.ModelContextExceeded
	default:
		return protocol.ModelRejected
	}
}

// impliedStatus derives a status from the fields of an error event, which has no status line.
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

// forLog returns the error for the log, with the short fields only. The message may repeat the user's text, so it is
// included only for status 404, where it names the model or the path that does not exist.
func (e providerError) forLog(status int) error {
	fields := []string{"the model provider returned"}
	if status > 0 {
		fields = append(fields, strconv.Itoa(status))
	}
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, name+"="+value[:min(len(value), maxErrorWord)])
		}
	}
	add("type", e.Type)
	add("code", e.Code)
	add("param", e.Param)
	if status == http.StatusNotFound {
		add("message", e.Message)
	}
	return errors.New(strings.Join(fields, " "))
}

// retryAfter returns the wait that the headers request, in milliseconds (OpenAI), in seconds or as a date; 0 if there
// is none.
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
