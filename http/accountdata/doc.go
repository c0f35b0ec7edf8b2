// Package accountdata has the routes by which an account takes its data elsewhere: export, import and erasure. It is a
// part of package http, which adds its routes to the table and starts what they need.
//
// It contains no SQL. Exports and imports run as jobs of package persistence, not here.
package accountdata
