// Package protocol is the vocabulary of Turnstone: identifiers, resources, states, events and errors, as clients and the
// durable log see them. It imports nothing of ours, does no I/O and holds no behaviour beyond encoding and legality, so
// that every other package can speak it. What is exported here and published in openapi.json is promised; it changes
// only additively.
//
// Protocol history:
//
//	1  2026-11  the first published version
package protocol

// Version is the protocol_version of every event.
const Version = 1
