// Package files handles the requests for uploads and files.
//
// It contains no SQL and no state. A content passes through it without being held in memory: package transfer limits how
// long its other side may make no progress.
package files
