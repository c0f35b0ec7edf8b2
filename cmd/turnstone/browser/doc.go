// Package browser holds the service and its web app to what a person sees in a real Chromium. It has tests only: they
// start the program, lend the browser's tests in web/browser a way to kill and restart it, and report each of them.
package browser
