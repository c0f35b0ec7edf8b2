// Package route describes routes: the method, path and Policy of each, its handler, and its operation in the OpenAPI
// document. A route is declared once, with Call or Stream; the router and the document are built from that.
//
// It runs nothing: package router registers the routes and enforces their policies.
package route
