// Package projects handles the requests for projects: their state, their settings and instructions, their conversations
// and their work history.
//
// It contains no SQL and no state.
package projects
