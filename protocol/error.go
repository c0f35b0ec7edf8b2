package protocol

import (
	"errors"
	"fmt"
)

// Code is what went wrong, for a program: the `code` of a problem document. http holds the one table from code to status.
type Code string

// The codes that the service answers with.
const (
	CodeInvalidBody         Code = "invalid_body"          // 400: malformed JSON or transport
	CodeInvalidHeader       Code = "invalid_header"        // 400: a header field that is not UTF-8, or has control characters
	CodeUnauthenticated     Code = "unauthenticated"       // 401
	CodeCSRF                Code = "csrf"                  // 403: token missing or wrong
	CodeOrigin              Code = "origin"                // 403: another site's request
	CodeReauthRequired      Code = "reauth_required"       // 403: a recent sign-in is needed
	CodeRegistrationClosed  Code = "registration_closed"   // 403
	CodeNotFound            Code = "not_found"             // 404: missing, or not yours
	CodeMethodNotAllowed    Code = "method_not_allowed"    // 405
	CodeConflict            Code = "conflict"              // 409: any other conflict with durable state
	CodeStaleVersion        Code = "stale_version"         // 409: If-Match is not the current version
	CodeVersionRequired     Code = "version_required"      // 409: the mutation needs If-Match
	CodeConfirmation        Code = "confirmation_required" // 409
	CodeTurnInProgress      Code = "turn_in_progress"      // 409
	CodeHeadMoved           Code = "conversation_head_moved"
	CodeSteeringClosed      Code = "steering_closed"
	CodeNotDeliverable      Code = "steering_not_deliverable"
	CodeSequenceAhead       Code = "sequence_ahead"
	CodeEmailTaken          Code = "email_taken"
	CodeIdempotencyBusy     Code = "idempotency_in_progress" // 409: the same key is being worked on
	CodeTooLarge            Code = "too_large"               // 413
	CodeUnsupportedMedia    Code = "unsupported_media_type"  // 415
	CodeInvalid             Code = "invalid"                 // 422: a wrong value; Fields say which
	CodeIdempotencyMismatch Code = "idempotency_mismatch"    // 422: same key, other body
	CodeRateLimited         Code = "rate_limited"            // 429
	CodeTooManyLiveTurns    Code = "too_many_live_turns"     // 429
	CodeBudgetReached       Code = "budget_reached"          // 429: of model tokens, for this UTC day
	CodeTooManyStreams      Code = "too_many_streams"        // 429
	CodeTooManyInputs       Code = "too_many_inputs"         // 429: pending steering inputs
	CodeTooManyFollowUps    Code = "too_many_follow_ups"     // 429
	CodeTooManyRequests     Code = "too_many_requests"       // 429: of the account at once
	CodeWrongHost           Code = "wrong_host"              // 421: another service's Host
	CodeInternal            Code = "internal"                // 500: a defect of ours
	CodeUnavailable         Code = "unavailable"             // 503: a needed dependency or protection is away, or the outcome is unknown
)

// FieldError names one wrong field of a request.
type FieldError struct {
	Field   string `json:"field" doc:"Path of the field, as body.title or query.limit."`
	Message string `json:"message"`
}

// Error is a failure with a meaning. It is made where the meaning is known, wrapped on its way, and turned into a
// problem document once, in http.
type Error struct {
	Code       Code
	Detail     string       // concise, for a person; holds nothing of another account
	Fields     []FieldError // with CodeInvalid, CodeInvalidBody and CodeInvalidHeader
	Current    any          // with a conflict: what the client needs to reconcile; encoded as JSON
	RetryAfter int          // seconds; 0 leaves the header to http
	Err        error        // the cause, for the log
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Detail + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.Err }

// Is lets errors.Is(err, &Error{Code: c}) compare by code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Errorf makes an Error; %w keeps its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Detail: err.Error(), Err: errors.Unwrap(err)}
}

// Conflict makes a 409 that tells the client what stands.
func Conflict(code Code, current any, detail string) *Error {
	return &Error{Code: code, Detail: detail, Current: current}
}

// Invalid makes a 422 (or 400) about one field.
func Invalid(field, message string) *Error {
	return &Error{Code: CodeInvalid, Detail: field + " " + message, Fields: []FieldError{{Field: field, Message: message}}}
}

// CodeOf tells the meaning of an error; CodeInternal when it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
