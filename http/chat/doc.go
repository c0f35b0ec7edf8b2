// Package chat handles the requests for turns: it starts them, streams their events, sends commands to them, such as an input or a cancel, and keeps the
// queues of follow-ups that start the next ones.
//
// It contains no SQL and no state. A response is sent only after package actors/turn has committed what it reports.
package chat
