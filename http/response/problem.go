package response

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	stdhttp "net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// NoRobots is the X-Robots-Tag of every response: search engines list nothing of the service.
const NoRobots = "noindex, nofollow, noarchive"

// Statuses is the only table that maps error codes to HTTP statuses.
var Statuses = map[protocol.Code]int{
	protocol.CodeInvalidBody:                stdhttp.StatusBadRequest,
	protocol.CodeInvalidHeader:              stdhttp.StatusBadRequest,
	protocol.CodeUnauthenticated:            stdhttp.StatusUnauthorized,
	protocol.CodeCSRF:                       stdhttp.StatusForbidden,
	protocol.CodeOrigin:                     stdhttp.StatusForbidden,
	protocol.CodeReauthRequired:             stdhttp.StatusForbidden,
	protocol.CodeRegistrationClosed:         stdhttp.StatusForbidden,
	protocol.CodeMailNotConfigured:          stdhttp.StatusForbidden,
	protocol.CodeTranscriptionNotConfigured: stdhttp.StatusForbidden,
	protocol.CodeNotFound:                   stdhttp.StatusNotFound,
	protocol.CodeMethodNotAllowed:           stdhttp.StatusMethodNotAllowed,
	protocol.CodeConflict:                   stdhttp.StatusConflict,
	protocol.CodeStaleVersion:               stdhttp.StatusConflict,
	protocol.CodeVersionRequired:            stdhttp.StatusConflict,
	protocol.CodeConsentRequired:            stdhttp.StatusConflict,
	protocol.CodeConfirmation:               stdhttp.StatusConflict,
	protocol.CodeTurnInProgress:             stdhttp.StatusConflict,
	protocol.CodeHeadMoved:                  stdhttp.StatusConflict,
	protocol.CodeSteeringClosed:             stdhttp.StatusConflict,
	protocol.CodeApprovalDecided:            stdhttp.StatusConflict,
	protocol.CodeApprovalChanged:            stdhttp.StatusConflict,
	protocol.CodeNotDeliverable:             stdhttp.StatusConflict,
	protocol.CodeSequenceAhead:              stdhttp.StatusConflict,
	protocol.CodeEmailTaken:                 stdhttp.StatusConflict,
	protocol.CodeNameTaken:                  stdhttp.StatusConflict,
	protocol.CodeUploadFinished:             stdhttp.StatusConflict,
	protocol.CodeIdempotencyReused:          stdhttp.StatusConflict,
	protocol.CodeUploadExpired:              stdhttp.StatusGone,
	protocol.CodeRange:                      stdhttp.StatusRequestedRangeNotSatisfiable,
	protocol.CodeTooManyUploads:             stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyTasks:               stdhttp.StatusTooManyRequests,
	protocol.CodeSourceUnavailable:          stdhttp.StatusServiceUnavailable,
	protocol.CodeTooManyFiles:               stdhttp.StatusTooManyRequests,
	protocol.CodeIdempotencyBusy:            stdhttp.StatusConflict,
	protocol.CodeTooLarge:                   stdhttp.StatusRequestEntityTooLarge,
	protocol.CodeUnsupportedMedia:           stdhttp.StatusUnsupportedMediaType,
	protocol.CodeInvalid:                    stdhttp.StatusUnprocessableEntity,
	protocol.CodeIdempotencyMismatch:        stdhttp.StatusUnprocessableEntity,
	protocol.CodeRateLimited:                stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyLiveTurns:           stdhttp.StatusTooManyRequests,
	protocol.CodeBudgetReached:              stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyStreams:             stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyInputs:              stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyFollowUps:           stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyShares:              stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyPrompts:             stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyRequests:            stdhttp.StatusTooManyRequests,
	protocol.CodeWrongHost:                  stdhttp.StatusMisdirectedRequest,
	protocol.CodeInternal:                   stdhttp.StatusInternalServerError,
	protocol.CodeUnavailable:                stdhttp.StatusServiceUnavailable,
}

// Details of errors whose cause is not shown to the client.
const (
	detailInternal    = "An internal error occurred. Quote the request_id when you report it."
	detailUnavailable = "The service cannot do this right now. Try again."
	detailNotFound    = "The resource does not exist, or you have no access to it."
	detailInvalid     = "The request has an invalid value."
	// retryDefault is the Retry-After, in seconds, of a 429 or 503 whose error has none.
	retryDefault = 1
)

// Limits of the errors of a problem. Fields and messages can repeat names that the client chose, so a response without
// these limits would grow with the request.
const (
	maxErrors  = 20
	maxField   = 200 // bytes
	maxMessage = 300 // bytes
	maxDetail  = 500 // bytes
)

// Problem is the body of every error response (RFC 9457).
type Problem struct {
	Type      string                `json:"type" doc:"Always about:blank. Use status and code to identify the problem."`
	Title     string                `json:"title"`
	Status    int                   `json:"status"`
	Detail    string                `json:"detail" doc:"A human-readable explanation of the error."`
	Code      protocol.Code         `json:"code" doc:"A machine-readable error code."`
	RequestID string                `json:"request_id"`
	Current   json.RawMessage       `json:"current,omitempty" doc:"Present on every 409: the current state, which the client needs to resolve the conflict."`
	Errors    []protocol.FieldError `json:"errors,omitempty" maxItems:"20" doc:"Present on every 400 and 422: the invalid fields, at least one. If there are more than 20, detail says how many are left out."`
	Retry     int                   `json:"-"` // of Retry-After, in seconds; 0: none
}

func (p *Problem) Error() string { return string(p.Code) }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// ProblemOf returns the problem document of an error, without causes that the client must not see.
func ProblemOf(err error) *Problem {
	var known *protocol.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		known = &protocol.Error{Code: protocol.CodeUnavailable}
	default:
		known = &protocol.Error{Code: protocol.CodeInternal}
	}
	status, listed := Statuses[known.Code]
	if !listed {
		status = stdhttp.StatusInternalServerError
	}
	p := &Problem{
		Type: "about:blank", Title: stdhttp.StatusText(status), Status: status,
		Detail: sentence(shorten(known.Detail, maxDetail)), Code: known.Code, Errors: known.Fields, Retry: known.RetryAfter,
	}
	switch {
	case status == stdhttp.StatusNotFound: // the same body for a missing and for an inaccessible resource
		p.Detail, p.Errors = detailNotFound, nil
	case status == stdhttp.StatusConflict:
		p.Current = encodeCurrent(known.Current)
	case status == stdhttp.StatusBadRequest, status == stdhttp.StatusUnprocessableEntity:
		p.Errors = namedFields(known)
		p.countMore(len(known.Fields) - maxErrors)
	case status == stdhttp.StatusInternalServerError:
		p.Code, p.Detail = protocol.CodeInternal, detailInternal
	case p.Detail == protocol.OutcomeUnknown: // the client has to check whether the request took effect
	case status == stdhttp.StatusServiceUnavailable && (known.Err != nil || p.Detail == ""): // the cause is only logged
		p.Detail = detailUnavailable
	}
	if p.Retry == 0 && (status == stdhttp.StatusServiceUnavailable || status == stdhttp.StatusTooManyRequests) {
		p.Retry = retryDefault
	}
	return p
}

// NewRequestID returns the identifier of a request, which its response and the logs have.
func NewRequestID() string { return "req_" + uuid.Must(uuid.NewV7()).String() }

// UnroutedProblem is ProblemOf for a request that reaches no router: the problem has an identifier of its own.
func UnroutedProblem(err error) *Problem {
	p := ProblemOf(err)
	p.RequestID = NewRequestID()
	return p
}

// Send sends the problem as the response. The response must not have started.
func (p *Problem) Send(w stdhttp.ResponseWriter) {
	if p.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.Retry))
	}
	_ = send(w, p.Status, p.ContentType(""), p) // a problem can be encoded
}

// Refuse sends an error as the response to a request that reaches no router.
func Refuse(w stdhttp.ResponseWriter, err error) {
	p := UnroutedProblem(err)
	w.Header().Set("Cache-Control", "no-store")
	p.Send(w)
}

// defaultFields are the fields that a problem names if the error of a code names none. For other codes it names the
// body.
var defaultFields = map[protocol.Code]string{
	protocol.CodeIdempotencyMismatch: "header.Idempotency-Key",
}

// namedFields returns the invalid fields of a 400 or 422: at least one and at most maxErrors, each with a name and a
// message.
func namedFields(e *protocol.Error) []protocol.FieldError {
	field := defaultFields[e.Code]
	if field == "" {
		field = "body"
	}
	if len(e.Fields) == 0 {
		return []protocol.FieldError{{Field: field, Message: e.Detail}}
	}
	named := slices.Clone(e.Fields[:min(len(e.Fields), maxErrors)])
	for i := range named {
		if named[i].Field == "" {
			named[i].Field = field
		}
		if named[i].Message == "" {
			named[i].Message = e.Detail
		}
		named[i].Field, named[i].Message = shorten(named[i].Field, maxField), shorten(named[i].Message, maxMessage)
	}
	return named
}

// sentence returns a detail with a capital letter at its beginning and a full stop at its end. Errors that are wrapped or
// logged have neither.
func sentence(text string) string {
	if !strings.Contains(text, " ") {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "…") {
		text += "."
	}
	return text
}

// countMore adds the number of errors that the problem leaves out to its detail.
func (p *Problem) countMore(more int) {
	switch {
	case more == 1:
		p.Detail += " There is 1 more error."
	case more > 1:
		p.Detail += fmt.Sprintf(" There are %d more errors.", more)
	}
}

// shorten cuts a text that has more than most bytes, between two characters.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	return clip.Bytes(text, most-len(mark)) + mark
}

func encodeCurrent(current any) json.RawMessage {
	if current == nil {
		return json.RawMessage("null")
	}
	var out bytes.Buffer
	if err := WriteJSON(&out, current); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(out.Bytes())
}

// HumaProblem converts an error of a handler, or the validation errors of huma, to a problem. The Value of huma's
// errors is dropped, because it repeats the body.
func HumaProblem(status int, msg string, errs []error) *Problem {
	var known *protocol.Error
	if len(errs) == 1 && errors.As(errs[0], &known) || status >= stdhttp.StatusInternalServerError {
		return ProblemOf(errors.Join(errs...))
	}
	fields := make([]protocol.FieldError, 0, min(len(errs), maxErrors))
	for _, err := range errs[:min(len(errs), maxErrors)] {
		var detail *huma.ErrorDetail
		if detailer, ok := err.(huma.ErrorDetailer); ok {
			detail = detailer.ErrorDetail() // its Error would print the value
		} else {
			detail = &huma.ErrorDetail{Message: err.Error()}
		}
		if strings.HasPrefix(detail.Location, "path.") {
			return ProblemOf(&protocol.Error{Code: protocol.CodeNotFound})
		}
		if name, required := strings.CutPrefix(detail.Message, "expected required property "); required {
			name, _, _ = strings.Cut(name, " ")
			fields = append(fields, protocol.FieldError{Field: detail.Location + "." + name, Message: "is required"})
			continue
		}
		fields = append(fields, protocol.FieldError{Field: detail.Location, Message: strings.TrimPrefix(detail.Message, "jsontext: ")})
	}
	failure := &protocol.Error{Code: protocol.CodeInvalid, Detail: detailInvalid, Fields: fields}
	switch status {
	case stdhttp.StatusBadRequest, stdhttp.StatusRequestTimeout:
		failure.Code, failure.Detail = protocol.CodeInvalidBody, "The body is not valid JSON."
	case stdhttp.StatusRequestEntityTooLarge:
		failure.Code, failure.Detail = protocol.CodeTooLarge, msg
	case stdhttp.StatusUnsupportedMediaType:
		failure.Code, failure.Detail = protocol.CodeUnsupportedMedia, msg
	}
	p := ProblemOf(failure)
	p.countMore(len(errs) - maxErrors)
	return p
}

// Redirect writes a redirect to target as the response.
func Redirect(w stdhttp.ResponseWriter, target string) {
	w.Header().Set("Location", target)
	w.WriteHeader(stdhttp.StatusFound)
}
