// Package remote connects the nodes of a cluster: it sends messages to the actors of other nodes, and asks other nodes.
//
// It uses protoactor's remote. All messages have one envelope, a kind and bytes (google.protobuf.Any), so that nodes of
// two versions understand each other: a message of an unknown kind is ignored, and an ask of an unknown kind is refused.
// Every connection uses mutual TLS, in both directions: a peer that has a certificate of the cluster is trusted.
//
//	Ask ──▶ gateway of the peer ──▶ Answer's function ──▶ reply ──▶ gateway of the asker
//	Send ─▶ gateway of the peer, or an actor whose address came with a message
//
// Order: messages between two actors arrive in order, or not at all. Loss: a message is lost without notice when the
// connection breaks. So an ask may be repeated, and a stream of messages has positions. Slow peer: sending never waits,
// and the queue to a peer has no limit of its own; callers limit what they send before the peer has replied. Close: no
// message arrives after Close. Concurrency: all methods may be called from any goroutine.
//
// Packages relay and actors use it. It knows neither turns nor accounts.
package remote
