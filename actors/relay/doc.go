// Package relay lets the readers of a node follow turns that run on other nodes. All readers of a turn on one node share
// one relay, which receives what the turn commits, and publishes it to a tail of its own.
//
//	reader's node                                             owner's node
//	readers ◀── tail.Stream ◀── relay ──── subscribe ────────▶ feed ◀── tail.Stream ◀── actor of the turn
//	                              ◀─────── frames ────────────
//	                              ──────── credit ────────────▶
//
// Order: frames are published in sequence, and a relay that finds a gap ends. Resume: a relay starts after a sequence
// that its reader has from the log; readers that are behind read the log. Loss: a message that is lost shows as a gap, at
// the latest with the next beat. Slow reader: it does not delay the relay. Slow node: a feed sends only what it has credit
// for. Close: when the relay ends for any reason, its stream is abandoned, and the readers look the turn up again.
// Concurrency: the methods of Hub may be called from any goroutine.
//
// A relay is an optimization of reading the log: what it publishes is in the log, and everything works without relays,
// with a delay. Package actors uses it; it decides nothing about ownership.
package relay
