// Package accounts handles the requests for accounts: sign-ins and sessions, passwords, passkeys, identities, the email
// address, the settings, the limits and the security log. Package auth decides who may sign in, and sets the cookies.
//
// It contains no SQL and no state.
package accounts
