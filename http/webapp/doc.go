// Package webapp serves the web app that is built into the program: its one document, and its assets.
//
// The document contains no data of a user; the app gets that from the API.
package webapp
