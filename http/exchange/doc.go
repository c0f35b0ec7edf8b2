// Package exchange has what the handlers of all nouns share with the router while a request is in progress: its state, the limits
// from which it draws, the streams that it may become, and the slots and queues of accounts.
//
// It has no routes and writes no errors: package router runs the checks before a handler, and sends what the handler returns.
package exchange
