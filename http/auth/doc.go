// Package auth identifies the sender of a request: sessions and their cookies, passwords, OpenID Connect, CSRF, devices
// that have signed in before, and the keys of the service.
//
// It never writes a response body and knows no routes: package http calls it and encodes the results. It has no state
// of its own, apart from counts that WriteTallies stores; everything durable is stored through the interfaces of
// Config.
package auth
