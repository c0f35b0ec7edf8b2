package protocol

import "time"

// SecurityLogEntry is an event of an account that concerns its security.
type SecurityLogEntry struct {
	Number    int64      `json:"number" doc:"Of the entry in the log of the account; newer entries have higher numbers."`
	Event     string     `json:"event" example:"sign_in.succeeded" doc:"What happened: the kind of object and the change. New kinds may be added."`
	At        time.Time  `json:"at"`
	Address   *string    `json:"address" doc:"The IPv4 address or the /64 network of the client; null: no request caused the event, or the address is unknown."`
	SessionID *SessionID `json:"session_id" doc:"The session that the event concerns; null: none."`
	Count     int64      `json:"count" doc:"How often it happened: events that a stranger can cause, such as failed sign-ins, are counted for each minute and address."`
}
