// Package router passes each request through the checks that every route needs, and then to the handler of the route.
// guard.go lists the checks and their order: well-formed text, session, origin and CSRF token, recent sign-in, replay
// of an idempotent request, rate limit, identifiers of the path, ownership, body. It also writes the errors of all of
// them, and logs and measures every request.
//
// It knows no resource: the routes, the parameters of their paths, their handlers and what they store belong to the packages
// of the nouns, which do not import it: what they need of a request is in package exchange. It is the only package that imports
// chi and cors.
package router
