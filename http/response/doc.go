// Package response encodes responses: JSON as the contract defines it, problem documents (RFC 9457) and ETags.
// problem.go has the only table that maps the code of an error to a status.
//
// It knows neither requests nor routes.
package response
