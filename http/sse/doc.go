// Package sse writes the event streams of a node: one stream of server-sent events for each reader of a turn, of an upload,
// of a research task or of an account's feed.
//
//	Reader ──▶ source.next ──▶ liveStream     HTTP/1.1: the connection was taken over; a worker of the pump writes
//	                └────────▶ handlerStream  other connections: the goroutine of the handler writes
//
// source decides what a reader gets next; the two transports only write it. A stream ends with its log, with its client,
// with its session, or with the node.
//
// The package knows no routes, limits of accounts or errors of the API; package exchange calls Serve
// for a request that package router has checked.
package sse
