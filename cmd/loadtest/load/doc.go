// Package load sends requests to a service as many clients would, and records what they experience: streams that count,
// check and time every token, fleets of streams, and accounts.
//
// Load is open-loop: a request starts when it is due, whether or not the service keeps up, and the delay of a token
// counts from when the token was due. The package starts no process and judges no result.
package load
