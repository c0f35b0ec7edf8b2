// Package accountdata has the routes by which an account takes its data elsewhere: export, import and erasure. It is a
// part of package http, which adds its routes to the table and starts what they need.
//
// It contains no SQL. An export is written while it is sent; an import is only received here, and runs as a job of package persistence.
package accountdata
