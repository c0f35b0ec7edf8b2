// Package browser tests the service and its web app in a real Chromium, as a user sees them. The package contains only
// tests: they start the program, let the browser tests in web/browser kill and restart it, and report the result of
// each browser test.
package browser
