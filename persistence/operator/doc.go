// Package operator stores what an operator requests for an account: it disables and enables accounts, and counts what they
// have. It checks no rights: only the commands of an operator call it, not package http.
package operator
