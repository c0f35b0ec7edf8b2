// Package http is Turnstone at the socket: it decides who asks, decodes, asks the package that knows, and encodes.
//
// Every route is one line of the table in routes.go: a method, a path, a Policy and a handler. From the line come the
// router's entry, the checks in front of the handler, and the operation in the OpenAPI document, so none of the three
// can be forgotten. The checks run in one order for every route (security.go draws it): session, origin and CSRF, recent
// sign-in, replay of an idempotent request, limit, identifiers of the path, ownership, body.
//
// Handlers are short, hold no state, know no SQL and retry nothing. They return errors; errors.go holds the one table
// from an error's code to a status and the one writer of problem documents. chi, huma and cors are used here only.
package http
