// Package accounts stores accounts with their passwords, identities and settings, and the sessions of their devices.
//
// It hashes nothing and decides nothing about a sign-in: package http/auth does, and passes hashes.
package accounts
