package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/providers/model/lenient"
)

const (
	// maxErrorWord limits the bytes of each field of a provider's error in the log.
	maxErrorWord = 300
	// loadingWait is the wait before a retry while a server loads its model, if the server does not say how long.
	loadingWait = 5 * time.Second
	// codePolicy is the code of a request that the provider's content policy refuses. Client.Stream turns it into a refusal.
	codePolicy protocol.TurnErrorCode = "model_policy"
)

func unavailable(err error) *llm.Error {
	return &llm.Error{Code: protocol.ModelUnavailable, Retryable: true, Err: err}
}

// pending is unavailable for a request that the provider may still be working on.
func pending(err error) *llm.Error {
	failure := unavailable(err)
	failure.Pending = true
	return failure
}

func protocolFailure(err error) *llm.Error {
	return &llm.Error{Code: protocol.ModelProtocol, Err: err}
}

// Rejected returns the error for a request that cannot be encoded in the provider's wire format.
func Rejected(err error) error { return &llm.Error{Code: protocol.ModelRejected, Err: err} }

// Protocol returns the error for an event that the wire format does not allow.
func Protocol(err error) error { return protocolFailure(err) }

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
// {"error": "text"}, {"type": "error", "error": {...}}, the fields at the top level, any of these in an array, a text, or
// a web page.
type providerError struct {
	Type    string
	Code    string
	Param   string
	Message string

	wait  time.Duration // that the body asks for
	limit int           // of the context, in tokens
}

func (e *providerError) given() bool { return e.Type != "" || e.Code != "" || e.Message != "" }

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>\s*(.*?)\s*</title>`)

// maxErrorDepth limits the nesting of a provider's error.
const maxErrorDepth = 5

func readProviderError(body []byte) providerError { return readError(body, maxErrorDepth) }

func readError(body []byte, depth int) providerError {
	text := strings.TrimSpace(string(body))
	if text == "" || text == "null" || depth == 0 {
		return providerError{}
	}
	switch text[0] {
	case '<':
		if title := pageTitle.FindStringSubmatch(text); title != nil {
			return providerError{Message: "a web page: " + title[1]}
		}
		return providerError{}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return providerError{}
		}
		return readError(list[0], depth-1)
	case '{':
		return readErrorObject(body, depth)
	case '"':
		var inner string
		if json.Unmarshal([]byte(text), &inner) == nil && text != inner {
			if nested := readError([]byte(inner), depth-1); nested.given() {
				return nested
			}
			return providerError{Message: inner}
		}
	}
	if json.Valid([]byte(text)) {
		return providerError{} // a number, or a word of JSON
	}
	return providerError{Message: text}
}

func readErrorObject(body []byte, depth int) providerError {
	var outer struct {
		Error     lenient.Raw   `json:"error"`
		Errors    lenient.Raw   `json:"errors"`
		Type      lenient.Text  `json:"type"`
		Status    lenient.Text  `json:"status"`
		Code      lenient.Text  `json:"code"`
		ErrorCode lenient.Text  `json:"error_code"`
		Param     lenient.Text  `json:"param"`
		Message   lenient.Raw   `json:"message"`
		Msg       lenient.Text  `json:"msg"`
		ErrorMsg  lenient.Text  `json:"error_msg"`
		Detail    lenient.Raw   `json:"detail"`
		Text      lenient.Text  `json:"text"`
		Context   lenient.Count `json:"n_ctx"`
		Metadata  struct {
			Raw lenient.Text `json:"raw"`
		} `json:"metadata"`
		InnerError struct {
			Code lenient.Text `json:"code"`
		} `json:"innererror"`
		Base    baseResponse `json:"base_resp"`
		Details []struct {
			RetryDelay lenient.Text `json:"retryDelay"`
		} `json:"details"`
	}
	if lenient.Decode(body, &outer) != nil {
		return providerError{}
	}
	first := func(texts ...lenient.Text) string {
		for _, text := range texts {
			if text != "" {
				return string(text)
			}
		}
		return ""
	}
	found := providerError{
		Type: first(outer.Type, outer.Status), Code: first(outer.Code, outer.ErrorCode), Param: string(outer.Param), limit: max(0, int(outer.Context)),
	}
	if found.Code == "content_filter" || outer.InnerError.Code == "ResponsibleAIPolicyViolation" {
		found.Code = "content_filter"
	}
	for _, detail := range outer.Details {
		if wait, err := time.ParseDuration(string(detail.RetryDelay)); err == nil && wait > 0 {
			found.wait = wait
		}
	}
	for _, nested := range []lenient.Raw{outer.Error, outer.Message, outer.Detail, outer.Errors} {
		if inner := readError(nested, depth-1); inner.given() {
			found.merge(inner)
			break
		}
	}
	if outer.Base.failed() {
		found.merge(providerError{Type: miniMaxErrors[outer.Base.Code], Code: string(outer.Base.Code), Message: string(outer.Base.Message)})
	}
	if found.Message == "" {
		found.Message = first(outer.Msg, outer.ErrorMsg, outer.Text)
	}
	if raw := string(outer.Metadata.Raw); raw != "" { // the error behind a gateway
		inner := readError([]byte(raw), depth-1)
		found.Message += ": " + inner.Message
	}
	return found
}

// baseResponse is what MiniMax adds to every answer, with status 200 also to errors.
type baseResponse struct {
	Code    lenient.Text `json:"status_code"`
	Message lenient.Text `json:"status_msg"`
}

func (b *baseResponse) failed() bool { return b.Code != "" && b.Code != "0" }

// miniMaxErrors are the types of the errors that MiniMax numbers (platform.minimax.io/docs/api-reference/errorcode). The others
// are failures of MiniMax (1000, 1001, 1024, 1033), as which numbers that are not known count too, or come from voices.
var miniMaxErrors = map[lenient.Text]string{
	"1002": "rate_limit_exceeded", "1004": "authentication_error", "1008": "insufficient_balance", "1026": "content_filter",
	"1027": "content_filter", "1039": "rate_limit_exceeded", "1041": "rate_limit_exceeded", "1042": "invalid_request_error",
	"2013": "invalid_request_error", "2045": "rate_limit_exceeded", "2049": "authentication_error", "2056": "rate_limit_exceeded",
}

// merge adopts the fields of an inner error, which is more precise.
func (e *providerError) merge(inner providerError) {
	set := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	set(&e.Type, inner.Type)
	set(&e.Code, inner.Code)
	set(&e.Param, inner.Param)
	set(&e.Message, inner.Message)
	e.wait, e.limit = max(e.wait, inner.wait), max(e.limit, inner.limit)
}

// The messages of providers that have no code for what they mean.
var (
	contextExceeded = regexp.MustCompile(
		`(?i)prompt is too long|maximum context|context[ _-]?(length|window|size)|too many (input |total )?tokens|input (is|was) too long|` +
			`input token count|maximum (prompt|model|sequence|input) length|range of input length|max_new_tokens. must be <=|` +
			`longer than the maximum|exceeded model token limit|exceeds? (the )?max(imum)? (length|number of tokens)|prompt exceeds|` +
			`reduce the length of the (messages|prompt|input)|larger than the max context|prompt (is )?too (long|large)|exceed_context|` +
			`request too large|too large for model|tokens? (in|of) the (prompt|request|input).{0,40}exceed`)
	contextLimit = regexp.MustCompile(
		`(?i)(?:maximum (?:context|prompt|model|sequence|input) length(?: is| of)?|allowed \(|\[\d+, ?|must be <= ?|> |token limit:? |` +
			`context size \(|context length (?:of )?(?:only )?|with |cannot exceed |limit (?:of |is )?)\s*(\d{3,8})`)
	creditUsedUp = regexp.MustCompile(
		`(?i)credit balance is too low|insufficient (account )?(balance|credit|funds|quota)|payment required|billing (hard )?limit|` +
			`account (is )?in arrears|arrearage|out of credits|more credits|add credits|exceeded your current quota, please check your plan and billing`)
	policyRefuses = regexp.MustCompile(
		`(?i)content management policy|content policy|content[_ ]filter|responsible ?ai ?policy|moderation|inappropriate content|data_inspection|` +
			`safety (system|policy)|usage policies|prohibited content|flagged`)
	outputLimit = regexp.MustCompile(`(?i)^\W*max_(completion_|output_)?tokens\W+must be (less than|<=|at most)`)
	// The limits of a minute or a day, whose errors also speak of too many tokens. A shorter request would be within them, but
	// only for the moment, and it says nothing about the context.
	rateExceeded = regexp.MustCompile(
		`(?i)\b(tokens|requests)[ -]per[ -](second|min|minute|hour|day)\b|\b[tr]p[md]\b|rate[ _-]?limit|too many (tokens|requests).{0,20}, please wait|token rate`)
	askedWait = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+ seconds?)\b`)
	loading   = regexp.MustCompile(`(?i)loading model|model is (currently )?loading|is being loaded|warming up`)
)

// ProviderFailure classifies an error response. Status 0 means an error event in a stream that started normally.
func ProviderFailure(status int, header http.Header, body []byte) *llm.Error {
	found := readProviderError(body)
	wait := max(retryAfter(header), found.wait)
	code := found.classify(status, wait)
	failure := &llm.Error{
		Code: code, RetryAfter: wait, Err: &refusal{status: status, providerError: found},
		Lasting: status == http.StatusUnauthorized || status == http.StatusPaymentRequired || code == protocol.ModelCreditUsedUp,
	}
	switch failure.Code {
	case protocol.ModelUnavailable:
		failure.Retryable = true
		if failure.RetryAfter == 0 && loading.MatchString(found.Message) {
			failure.RetryAfter = loadingWait
		}
	case protocol.ModelRateLimited:
		failure.Retryable = true
		if failure.RetryAfter == 0 {
			failure.RetryAfter = found.askedWait()
		}
	case protocol.ModelContextExceeded:
		failure.Limit = found.contextLimit()
	}
	return failure
}

// refusal is a ProviderFailure whose text for the log contains neither the request nor a secret. If the provider repeats
// the request, its words decide about this request only: a user could have written them.
func (c *Client) refusal(status int, header http.Header, body []byte, request llm.Request) *llm.Error {
	failure := ProviderFailure(status, header, body)
	var refused *refusal
	if errors.As(failure.Err, &refused) {
		if refused.quotes = quotes(strings.Join([]string{refused.Type, refused.Code, refused.Param, refused.Message}, " "), request); refused.quotes {
			failure.Limit = 0
			failure.Lasting = status == http.StatusUnauthorized || status == http.StatusPaymentRequired
		}
		refused.clean = func(text string) string { return c.clean(text, request) }
	}
	return failure
}

func (e *providerError) contextLimit() int {
	if e.limit > 0 {
		return e.limit
	}
	if found := contextLimit.FindStringSubmatch(e.Message); found != nil {
		limit, _ := strconv.Atoi(found[1])
		return limit
	}
	return 0
}

// askedWait returns the wait that the words of an error ask for; 0 if they ask for none.
func (e *providerError) askedWait() time.Duration {
	found := askedWait.FindStringSubmatch(e.Message)
	if found == nil {
		return 0
	}
	number, inWords, _ := strings.Cut(found[1], " ")
	if inWords != "" {
		number += "s"
	}
	wait, err := time.ParseDuration(number)
	if err != nil {
		return 0
	}
	return wait
}

func (e *providerError) classify(status int, wait time.Duration) protocol.TurnErrorCode {
	kind := strings.ToLower(e.Type + " " + e.Code)
	if status == 0 {
		status = e.impliedStatus(kind)
	}
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(kind, word) {
				return true
			}
		}
		return false
	}
	tooLong := !outputLimit.MatchString(e.Message) && (has("context_length", "context_window", "exceed_context", "string_above_max_length", "request_too_large") ||
		contextExceeded.MatchString(e.Message))
	switch {
	case status == http.StatusPaymentRequired, has("insufficient_quota", "insufficient_balance", "billing", "arrearage"),
		status != http.StatusTooManyRequests && creditUsedUp.MatchString(e.Message), wait == 0 && creditUsedUp.MatchString(e.Message):
		return protocol.ModelCreditUsedUp
	case status < 500 && (has("content_filter", "content_policy", "moderation", "data_inspection", "safety", "contentfilter") ||
		status != http.StatusUnauthorized && status != http.StatusTooManyRequests && policyRefuses.MatchString(e.Message)):
		return codePolicy
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return protocol.ModelUnauthorized
	case has("rate_limit", "ratelimit", "throttling"), rateExceeded.MatchString(e.Message):
		return protocol.ModelRateLimited
	case status == http.StatusRequestEntityTooLarge, tooLong && status != http.StatusTooManyRequests:
		return protocol.ModelContextExceeded
	case status == http.StatusTooManyRequests:
		return protocol.ModelRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return protocol.ModelUnavailable
	case status < 400: // a redirect, which is never followed
		return protocol.ModelProtocol
	}
	return protocol.ModelRejected
}

// impliedStatus derives a status from the fields of an error event, which has no status line.
func (e *providerError) impliedStatus(kind string) int {
	if status, err := strconv.Atoi(e.Code); err == nil && status >= 400 && status < 600 {
		return status
	}
	switch {
	case strings.Contains(kind, "rate_limit"), strings.Contains(kind, "resource_exhausted"):
		return http.StatusTooManyRequests
	case strings.Contains(kind, "authentication"), strings.Contains(kind, "permission"), strings.Contains(kind, "invalid_api_key"):
		return http.StatusUnauthorized
	case strings.Contains(kind, "invalid"), strings.Contains(kind, "badrequest"), strings.Contains(kind, "context"), strings.Contains(kind, "content_"):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// refusal is an error of the provider, for the log and for lessons.
type refusal struct {
	providerError
	status int
	quotes bool                // it may repeat pieces of the request
	clean  func(string) string // nil: the message is not logged
}

// Error returns the status and the fields. The message may repeat the user's text, so it is cleaned.
func (r *refusal) Error() string {
	fields := []string{"the model provider returned"}
	if r.status > 0 {
		fields = append(fields, strconv.Itoa(r.status))
	}
	add := func(name, value string) {
		if r.clean != nil {
			value = r.clean(value)
		}
		if value != "" {
			fields = append(fields, name+"="+value[:min(len(value), maxErrorWord)])
		}
	}
	add("type", r.Type)
	add("code", r.Code)
	add("param", r.Param)
	if r.clean != nil {
		add("message", r.Message)
	}
	return strings.Join(fields, " ")
}

const (
	redacted = "[redacted]"
	// minEcho is the shortest piece of a provider's message that is taken for a repetition of the request.
	minEcho = 12
	// minSecret is the shortest secret that is looked for. A shorter one would be found in ordinary words.
	minSecret = 6
)

// minQuote is the shortest piece of a provider's error that is taken for a repetition of the request, without regard to
// punctuation and escapes.
const minQuote = 16

// quotes reports whether a provider's text has pieces of a request, in whatever encoding.
func quotes(text string, request llm.Request) bool {
	text = plainWords(text[:min(len(text), maxErrorBody)])
	pieces := map[string]bool{}
	for at := 0; at+minQuote <= len(text); at++ {
		pieces[text[at:at+minQuote]] = true
	}
	has := func(source string) bool {
		source = plainWords(source)
		if len(source) < minQuote {
			return len(source) > 2 && strings.Contains(text, source)
		}
		for at := 0; at+minQuote <= len(source); at++ {
			if pieces[source[at:at+minQuote]] {
				return true
			}
		}
		return false
	}
	for i := range request.Messages {
		message := &request.Messages[i]
		if has(message.Text) || slices.ContainsFunc(message.ToolCalls, func(call llm.ToolCall) bool { return has(string(call.Input)) }) {
			return true
		}
	}
	return has(request.System)
}

// maxEntity is the longest character reference of HTML that is read, in bytes.
const maxEntity = 10

// plainWords returns the words of a text in lower case, between single spaces. Escapes of JSON, Python and HTML separate words.
func plainWords(text string) string {
	var words strings.Builder
	words.WriteByte(' ')
	separate := false
	for at := 0; at < len(text); at++ {
		char := text[at]
		if char == '\\' && at+1 < len(text) {
			switch at++; text[at] {
			case 'u':
				at += 4
			case 'x':
				at += 2
			}
			char = ' '
		} else if end := strings.IndexByte(text[at:min(len(text), at+maxEntity)], ';'); char == '&' && end > 0 {
			at, char = at+end, ' '
		}
		if char >= 'A' && char <= 'Z' {
			char += 'a' - 'A'
		}
		if char >= 'a' && char <= 'z' || char >= '0' && char <= '9' {
			if separate && words.Len() > 1 {
				words.WriteByte(' ')
			}
			separate = false
			words.WriteByte(char)
			continue
		}
		separate = true
	}
	words.WriteByte(' ')
	return words.String()
}

// clean removes configured secrets and pieces of the request from a provider's text.
func (c *Client) clean(text string, request llm.Request) string {
	secrets := []string{c.options.Secret}
	for _, values := range c.options.Headers {
		for _, value := range values {
			secrets = append(append(secrets, value), strings.Fields(value)...)
		}
	}
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	text = text[:min(len(text), 2*maxErrorWord)]
	for i := range request.Messages {
		text = withoutEcho(text, request.Messages[i].Text)
		for _, call := range request.Messages[i].ToolCalls {
			text = withoutEcho(text, string(call.Input))
		}
	}
	return strings.ToValidUTF8(withoutEcho(text, request.System), "")
}

// withoutEcho replaces the pieces of text that source contains.
func withoutEcho(text, source string) string {
	if short := strings.TrimSpace(source); len(short) >= 4 && len(short) < minEcho {
		return strings.ReplaceAll(text, short, redacted)
	}
	for at := 0; at+minEcho <= len(text); at++ {
		end := at + minEcho
		if !strings.Contains(source, text[at:end]) {
			continue
		}
		for end < len(text) && strings.Contains(source, text[at:end+1]) {
			end++
		}
		text = text[:at] + redacted + text[end:]
		at += len(redacted) - 1
	}
	return text
}

// retryAfter returns the wait that the headers request: in milliseconds (OpenAI), in seconds, as a date, or as the time
// until a limit is reset. It is 0 if there is none.
func retryAfter(header http.Header) time.Duration {
	for _, each := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		value := header.Get(each.name)
		if number, err := strconv.ParseFloat(value, 64); err == nil && number >= 0 && number < 1e9 {
			return time.Duration(number * float64(each.unit))
		}
		if at, err := http.ParseTime(value); err == nil {
			return max(0, time.Until(at))
		}
	}
	for _, limit := range []string{"Requests", "Tokens"} {
		if left := header.Get("X-Ratelimit-Remaining-" + limit); left != "" && left != "0" {
			continue
		}
		if wait, err := time.ParseDuration(header.Get("X-Ratelimit-Reset-" + limit)); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}
