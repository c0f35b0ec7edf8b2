// Package verify checks what the clients of a service saw and what they received against the contract, and against what
// the service has stored. The test suites and the load tester use it, so that each rule is stated once:
//
//   - Position and Reader: one reader of a stream, over any number of connections.
//   - Turn and Upload: a whole log, and what it says about commands, messages and files.
//   - Witness: every reader of every log saw the same bytes, and they are stored.
//   - ReadChunks: the stored rows of a log.
//   - CheckWrites: acknowledged writes are stored, each once.
//   - Feed: one reader of the account feed.
//
// The functions take bytes and values and return findings; no finding means that every checked rule held. A finding is an
// error too. The package sends no requests, reads no store and has no clock. It imports only package protocol, and package
// client uses it for the rules of a stream.
package verify
