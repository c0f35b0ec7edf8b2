// Package http implements Turnstone's HTTP API: it connects the packages of the nouns, and serves them. A handler decodes the request,
// calls the package that implements the operation, and encodes the response.
//
// Each noun is a package below this one, with its handlers and the interface of its store; routes.go lists them. Every route is one
// line of routes.go in the package of its noun: a method, a path, a policy and a handler, which is in the file of what it works on.
// Package router builds three things from that line, so that none can be forgotten: the entry of the router, the checks in front of
// the handler, and the operation in the OpenAPI document.
//
// Handlers are short, contain no SQL, and have no state except caches and the queues of accounts. They return errors, which package response maps to statuses.
package http
