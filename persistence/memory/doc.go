// Package memory stores to which sources of memory an account consents, and where the user of a conversation is. What needs a
// consent is read in a statement that reads the consent too, or by a caller that reads the consent afterwards: so nothing is
// returned after a revocation was committed. It is called by packages http and persistence, and by the tools of a turn.
package memory
