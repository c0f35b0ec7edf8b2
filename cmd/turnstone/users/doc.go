// Package users does what the commands `turnstone user …` ask for: it finds, creates, changes and erases accounts, and prints
// reports about them. What it changes is recorded in the audit, with the request identifier operator-….
//
// It opens no database and reads no settings; package main does. The reports have nothing that users wrote.
package users
