// Package protocol defines the types that all parts of Turnstone share: identifiers, resources, states, events and
// errors, as clients and the durable log see them. It imports no other package of this module and does no I/O, so every other
// package can import it. Its functions create and encode identifiers, encode events and fold them into messages, look up state
// transitions, and contain the checks and texts that several packages share (CheckSteering, MatchesVersion, PromptName,
// SizeText). The definitions that are exported here and published in openapi.json are a contract: they change only additively.
//
// Protocol history:
//
//	1  2026-11  first published version
package protocol

// Version is the protocol_version of every event.
const Version = 1
