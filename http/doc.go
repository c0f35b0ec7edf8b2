// Package http implements Turnstone's HTTP API. A handler decodes the request, calls the package that implements the
// operation, and encodes the response.
//
// Every route is one line of a table (routes.go, and a function in the file of each resource): a method, a path, a
// policy and a handler. Package router builds three things from that line, so that none can be forgotten: the entry of
// the router, the checks in front of the handler, and the operation in the OpenAPI document.
//
// Handlers are short, have no state and contain no SQL. They return errors, which package response maps to statuses.
package http
