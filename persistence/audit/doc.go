// Package audit stores the security events of accounts, for 400 days. An event names what happened, to which account
// and from which address; it contains no text of a user.
package audit
