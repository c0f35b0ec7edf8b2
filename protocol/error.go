package protocol

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the machine-readable kind of an error: the `code` of a problem document. Package http has the only table from
// codes to HTTP statuses.
type Code string

// The error codes of the API, with their HTTP statuses.
const (
	CodeInvalidBody                Code = "invalid_body"                 // 400: malformed JSON or transport
	CodeInvalidHeader              Code = "invalid_header"               // 400: a header field is not UTF-8, or contains control characters; or the request is not valid HTTP/1.1
	CodeUnauthenticated            Code = "unauthenticated"              // 401
	CodeCSRF                       Code = "csrf"                         // 403: token missing or wrong
	CodeOrigin                     Code = "origin"                       // 403: the request comes from another site
	CodeReauthRequired             Code = "reauth_required"              // 403: a recent sign-in is needed
	CodeRegistrationClosed         Code = "registration_closed"          // 403
	CodeMailNotConfigured          Code = "mail_not_configured"          // 403: the service sends no mail
	CodeTranscriptionNotConfigured Code = "transcription_not_configured" // 403: no server turns speech into text
	CodeNotFound                   Code = "not_found"                    // 404: it does not exist, or belongs to another account
	CodeMethodNotAllowed           Code = "method_not_allowed"           // 405
	CodeConflict                   Code = "conflict"                     // 409: any other conflict with durable state
	CodeStaleVersion               Code = "stale_version"                // 409: If-Match is not the current version
	CodeVersionRequired            Code = "version_required"             // 409: the mutation needs If-Match
	CodeConfirmation               Code = "confirmation_required"        // 409
	CodeConsentRequired            Code = "consent_required"             // 409: the account does not consent to the use of this data
	CodeTurnInProgress             Code = "turn_in_progress"             // 409
	CodeHeadMoved                  Code = "conversation_head_moved"
	CodeSteeringClosed             Code = "steering_closed"
	CodeApprovalDecided            Code = "approval_decided" // another decision was made, or the approval has expired or was cancelled
	CodeApprovalChanged            Code = "approval_changed" // the decision names another input
	CodeNotDeliverable             Code = "steering_not_deliverable"
	CodeSequenceAhead              Code = "sequence_ahead"
	CodeEmailTaken                 Code = "email_taken"
	CodeNameTaken                  Code = "name_taken"              // 409: another prompt has the name
	CodeUploadFinished             Code = "upload_finished"         // 409: the upload takes no more content
	CodeIdempotencyReused          Code = "idempotency_reused"      // 409: an upload with the same key and another body
	CodeUploadExpired              Code = "upload_expired"          // 410
	CodeIdempotencyBusy            Code = "idempotency_in_progress" // 409: a request with the same key is in progress
	CodeRange                      Code = "range_not_satisfiable"   // 416
	CodeTooLarge                   Code = "too_large"               // 413
	CodeUnsupportedMedia           Code = "unsupported_media_type"  // 415
	CodeInvalid                    Code = "invalid"                 // 422: an invalid value; Fields names the field
	CodeIdempotencyMismatch        Code = "idempotency_mismatch"    // 422: the same key with another body
	CodeRateLimited                Code = "rate_limited"            // 429
	CodeTooManyLiveTurns           Code = "too_many_live_turns"     // 429
	CodeBudgetReached              Code = "budget_reached"          // 429: the account's model tokens for this UTC day are used up
	CodeTooManyStreams             Code = "too_many_streams"        // 429
	CodeTooManyInputs              Code = "too_many_inputs"         // 429: too many pending steering inputs
	CodeTooManyFollowUps           Code = "too_many_follow_ups"     // 429
	CodeTooManyUploads             Code = "too_many_uploads"        // 429: too many unfinished uploads
	CodeTooManyTasks               Code = "too_many_tasks"          // 429: too many research tasks that have not ended
	CodeTooManyFiles               Code = "too_many_files"          // 429
	CodeTooManyShares              Code = "too_many_shares"         // 429
	CodeTooManyPrompts             Code = "too_many_prompts"        // 429
	CodeTooManyRequests            Code = "too_many_requests"       // 429: too many concurrent requests of the account
	CodeWrongHost                  Code = "wrong_host"              // 421: the Host header names another service
	CodeInternal                   Code = "internal"                // 500: a defect of the service
	CodeSourceUnavailable          Code = "source_unavailable"      // 503: a place that a research task is to search is not configured
	CodeUnavailable                Code = "unavailable"             // 503: a required dependency or protection is unavailable, or the outcome is unknown
)

// FieldError describes one invalid field of a request.
type FieldError struct {
	Field   string `json:"field" doc:"Path of the field, for example body.title or query.limit."`
	Message string `json:"message"`
}

// Error is a failure with an API error code. It is created where the code is known, wrapped by the callers, and
// converted to a problem document in one place, package http.
type Error struct {
	Code       Code
	Detail     string       // for a person, concise; contains no data of another account
	Fields     []FieldError // for CodeInvalid, CodeInvalidBody and CodeInvalidHeader
	Current    any          // for a conflict: the state that the client needs to reconcile; encoded as JSON
	RetryAfter int          // seconds; 0: package http chooses the header's value
	Err        error        // the cause, for the log
}

func (e *Error) Error() string {
	text := string(e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Is lets errors.Is(err, &Error{Code: c}) compare by code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Errorf creates an Error with a formatted detail; %w sets the cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Detail: err.Error(), Err: errors.Unwrap(err)}
}

// Conflict creates a 409 error with the current state, for the client to reconcile.
func Conflict(code Code, current any, detail string) *Error {
	return &Error{Code: code, Detail: detail, Current: current}
}

// Invalid creates a 422 error for one field, for example body.title. message is the rest of a sentence about it.
func Invalid(field, message string) *Error {
	return &Error{Code: CodeInvalid, Detail: subjectOf(field) + " " + message, Fields: []FieldError{{Field: field, Message: message}}}
}

// subjectOf returns the subject of a sentence about a field of a request.
func subjectOf(field string) string {
	part, name, inside := strings.Cut(field, ".")
	if !inside {
		return "The " + part
	}
	kind, known := map[string]string{"query": "parameter", "header": "header"}[part]
	if !known {
		kind = "field"
	}
	return "The " + name + " " + kind
}

// CodeOf returns the code of an error; CodeInternal for an error without a code, and for nil.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// OutcomeUnknown is the detail of a CodeUnavailable error of a request that may or may not have taken effect. To find
// out, the client repeats the request with its Idempotency-Key, or reads the resource.
const OutcomeUnknown = "It is not known whether the request took effect. Check before you repeat it."
