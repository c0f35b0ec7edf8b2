// Package e2e has the tests of the whole program as its clients and operators use it: each starts the built binary with its
// own stores, and speaks HTTP.
package e2e
