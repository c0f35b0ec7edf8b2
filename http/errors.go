package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	stdhttp "net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/protocol"
)

// statuses is the one table from what went wrong to what the client is told.
var statuses = map[protocol.Code]int{
	protocol.CodeInvalidBody:         stdhttp.StatusBadRequest,
	protocol.CodeInvalidHeader:       stdhttp.StatusBadRequest,
	protocol.CodeUnauthenticated:     stdhttp.StatusUnauthorized,
	protocol.CodeCSRF:                stdhttp.StatusForbidden,
	protocol.CodeOrigin:              stdhttp.StatusForbidden,
	protocol.CodeReauthRequired:      stdhttp.StatusForbidden,
	protocol.CodeRegistrationClosed:  stdhttp.StatusForbidden,
	protocol.CodeNotFound:            stdhttp.StatusNotFound,
	protocol.CodeMethodNotAllowed:    stdhttp.StatusMethodNotAllowed,
	protocol.CodeConflict:            stdhttp.StatusConflict,
	protocol.CodeStaleVersion:        stdhttp.StatusConflict,
	protocol.CodeVersionRequired:     stdhttp.StatusConflict,
	protocol.CodeConfirmation:        stdhttp.StatusConflict,
	protocol.CodeTurnInProgress:      stdhttp.StatusConflict,
	protocol.CodeHeadMoved:           stdhttp.StatusConflict,
	protocol.CodeSteeringClosed:      stdhttp.StatusConflict,
	protocol.CodeNotDeliverable:      stdhttp.StatusConflict,
	protocol.CodeSequenceAhead:       stdhttp.StatusConflict,
	protocol.CodeEmailTaken:          stdhttp.StatusConflict,
	protocol.CodeIdempotencyBusy:     stdhttp.StatusConflict,
	protocol.CodeTooLarge:            stdhttp.StatusRequestEntityTooLarge,
	protocol.CodeUnsupportedMedia:    stdhttp.StatusUnsupportedMediaType,
	protocol.CodeInvalid:             stdhttp.StatusUnprocessableEntity,
	protocol.CodeIdempotencyMismatch: stdhttp.StatusUnprocessableEntity,
	protocol.CodeRateLimited:         stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyLiveTurns:    stdhttp.StatusTooManyRequests,
	protocol.CodeBudgetReached:       stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyStreams:      stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyInputs:       stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyFollowUps:    stdhttp.StatusTooManyRequests,
	protocol.CodeTooManyRequests:     stdhttp.StatusTooManyRequests,
	protocol.CodeWrongHost:           stdhttp.StatusMisdirectedRequest,
	protocol.CodeInternal:            stdhttp.StatusInternalServerError,
	protocol.CodeUnavailable:         stdhttp.StatusServiceUnavailable,
}

// What a client is told when the cause is not its business.
const (
	detailInternal    = "Something went wrong on our side. The request_id helps to find it."
	detailUnavailable = "The service cannot do this right now. Try again."
	detailNotFound    = "There is nothing here that you can see."
	detailInvalid     = "The request holds a wrong value."
	// retryDefault is what a client waits, in seconds, when nothing says better.
	retryDefault = 1
)

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type      string                `json:"type" doc:"about:blank: status and code say it all."`
	Title     string                `json:"title"`
	Status    int                   `json:"status"`
	Detail    string                `json:"detail" doc:"For a person."`
	Code      protocol.Code         `json:"code" doc:"For a program."`
	RequestID string                `json:"request_id"`
	Current   json.RawMessage       `json:"current,omitempty" doc:"On every 409: what the client needs to reconcile."`
	Errors    []protocol.FieldError `json:"errors,omitempty" doc:"On every 422 and 400: the wrong fields, at least one."`
	retry     int
}

func (p *Problem) Error() string { return string(p.Code) }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// problemOf gives an error its public form.
func problemOf(err error) *Problem {
	var known *protocol.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		known = &protocol.Error{Code: protocol.CodeUnavailable}
	default:
		known = &protocol.Error{Code: protocol.CodeInternal}
	}
	status, listed := statuses[known.Code]
	if !listed {
		status = stdhttp.StatusInternalServerError
	}
	p := &Problem{
		Type: "about:blank", Title: stdhttp.StatusText(status), Status: status,
		Detail: known.Detail, Code: known.Code, Errors: known.Fields, retry: known.RetryAfter,
	}
	switch {
	case status == stdhttp.StatusNotFound: // one body, whatever was missing and why
		p.Detail, p.Errors = detailNotFound, nil
	case status == stdhttp.StatusConflict:
		p.Current = encodeCurrent(known.Current)
	case status == stdhttp.StatusBadRequest, status == stdhttp.StatusUnprocessableEntity:
		p.Errors = namedFields(known)
	case status == stdhttp.StatusInternalServerError:
		p.Code, p.Detail = protocol.CodeInternal, detailInternal
	case p.Detail == persistence.OutcomeUnknown: // the client has to look
	case status == stdhttp.StatusServiceUnavailable && (known.Err != nil || p.Detail == ""): // the cause is for the log
		p.Detail = detailUnavailable
	}
	if p.retry == 0 && (status == stdhttp.StatusServiceUnavailable || status == stdhttp.StatusTooManyRequests) {
		p.retry = retryDefault
	}
	return p
}

// defaultFields name what is wrong where an error does not say it.
var defaultFields = map[protocol.Code]string{
	protocol.CodeIdempotencyMismatch: "header." + keyHeader,
}

// namedFields are the wrong fields of a 400 or 422: at least one, each with a name and a message.
func namedFields(e *protocol.Error) []protocol.FieldError {
	field := defaultFields[e.Code]
	if field == "" {
		field = "body"
	}
	if len(e.Fields) == 0 {
		return []protocol.FieldError{{Field: field, Message: e.Detail}}
	}
	named := slices.Clone(e.Fields)
	for i := range named {
		if named[i].Field == "" {
			named[i].Field = field
		}
		if named[i].Message == "" {
			named[i].Message = e.Detail
		}
	}
	return named
}

func encodeCurrent(current any) json.RawMessage {
	if current == nil {
		return json.RawMessage("null")
	}
	var out bytes.Buffer
	if err := writeJSON(&out, current); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(out.Bytes())
}

// fail ends a request with an error, if its answer has not begun.
func (s *Server) fail(w stdhttp.ResponseWriter, r *stdhttp.Request, err error) {
	p := s.finishProblem(w, r, problemOf(err), err)
	if turnsAway(r) {
		redirectToApp(w, p)
		return
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = writeJSON(w, p) // the client may be gone
}

// finishProblem adds what only the request knows, and logs what is our fault. A refusal over the limit of its address
// becomes 429.
func (s *Server) finishProblem(w stdhttp.ResponseWriter, r *stdhttp.Request, p *Problem, cause error) *Problem {
	ex := exchangeOf(r.Context())
	if refused(p.Status) {
		if over := s.drawRefusal(r.Context(), ex); over != nil {
			p, cause = problemOf(over), over
		}
	}
	p.RequestID = ex.requestID
	header := w.Header()
	if p.retry > 0 {
		header.Set("Retry-After", strconv.Itoa(p.retry))
	}
	if p.Status == stdhttp.StatusUnauthorized && !ex.public {
		s.clearCookie(header)
	}
	if p.Status == stdhttp.StatusNotFound && ex.caller != nil && ex.pattern != unknownPattern {
		s.record(ex, persistence.EventNotFound) // somebody may be trying identifiers
	}
	if p.Status >= stdhttp.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("request failed", zap.String("request_id", ex.requestID), zap.String("route", ex.pattern),
			zap.String("code", string(p.Code)), zap.Error(cause))
	}
	return p
}

// init replaces huma's errors with ours. The variables are global in huma; ours hold no state of a Server, which they
// find through the request.
func init() {
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return humaProblem(status, msg, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		r, w := humachi.Unwrap(ctx)
		p, cause := humaProblem(status, msg, errs), errors.Join(errs...)
		if cause == nil {
			cause = errors.New(msg)
		}
		return exchangeOf(r.Context()).server.finishProblem(w, r, p, cause)
	}
}

// humaProblem understands both what a handler returned and what huma found wrong. huma's own Value is dropped: it
// echoes the body.
func humaProblem(status int, msg string, errs []error) *Problem {
	var known *protocol.Error
	if len(errs) == 1 && errors.As(errs[0], &known) || status >= stdhttp.StatusInternalServerError {
		return problemOf(errors.Join(errs...))
	}
	fields := make([]protocol.FieldError, 0, len(errs))
	for _, err := range errs {
		detail := &huma.ErrorDetail{Message: err.Error()}
		if detailer, ok := err.(huma.ErrorDetailer); ok {
			detail = detailer.ErrorDetail()
		}
		if strings.HasPrefix(detail.Location, "path.") {
			return problemOf(&protocol.Error{Code: protocol.CodeNotFound})
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
	return problemOf(failure)
}
