// Package feed serves the account feed: a stream of server-sent events that names every change of an account's resources.
//
//	persistence/feed ──▶ Hub ──▶ Reader ──▶ http/sse
//
// A Hub reads the end of the feed once for all readers of the node, and keeps the newest items of each account that has
// readers. A Reader is a cursor: the Hub wakes it, and it takes what follows, from the Hub or, further back, from the
// store. Nothing is pushed to a reader, so nothing is dropped.
//
// The package writes nothing and has no state that a restart would lose.
package feed
