// Package accountdata has the routes by which an account takes its data elsewhere: export, import and erasure. It is a
// part of package http, which adds its routes to the table and starts what they need.
package accountdata
