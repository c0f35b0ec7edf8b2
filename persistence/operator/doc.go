// Package operator stores what an operator requests for an account: it disables and enables accounts, and counts what they
// have.
package operator
