// Package cluster is the wire between nodes: it sends messages to the actors of other nodes, asks other nodes, and lets the
// readers of a node follow turns that run elsewhere. It knows neither who owns a turn nor what a message means to its
// receiver.
//
// A Link uses protoactor's remote. All messages have one envelope, a kind and bytes (google.protobuf.Any), so that nodes of
// two versions understand each other: a message of an unknown kind is ignored, and an ask of an unknown kind is refused.
// Every connection uses mutual TLS, in both directions: a peer that has a certificate of the cluster is trusted.
//
//	Ask ──▶ gateway of the peer ──▶ AskHandler ──▶ reply ──▶ gateway of the asker
//	Send ─▶ gateway of the peer, or an actor whose address came with a message
//
// Order: messages between two actors arrive in order, or not at all. Loss: a message is lost without notice when the
// connection breaks. So an ask may be repeated, and a stream of messages has positions. Slow peer: sending never waits,
// and the queue to a peer has no limit of its own; callers limit what they send before the peer has replied. Close: no
// message arrives after Close. Concurrency: all methods may be called from any goroutine.
//
// A Hub has the relays of a node. All readers of a turn on one node share one relay, which receives what the turn commits,
// and publishes it to a tail of its own.
//
//	reader's node                                             owner's node
//	readers ◀── tail.Stream ◀── relay ──── subscribe ────────▶ source ◀── tail.Stream ◀── actor of the turn
//	                              ◀─────── frames ────────────
//	                              ──────── credit ────────────▶
//
// Order: frames are published in sequence, and a relay that finds a gap ends. Resume: a relay starts after a sequence
// that its reader has from the log; readers that are behind read the log. Loss: a message that is lost shows as a gap, at
// the latest with the next beat. Slow reader: it does not delay the relay. Slow node: a source sends only what it has credit
// for. Close: when the relay ends for any reason, its stream is abandoned, and the readers look the turn up again. A relay
// is an optimization of reading the log: what it publishes is in the log, and everything works without relays, with a delay.
package cluster
