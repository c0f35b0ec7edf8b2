//go:build !failpoint

package failpoint

import "context"

// Before is called before a step. When it returns an error, the caller must not run the step.
func Before(Point) error { return nil }

// After is called after a step with the step's error, and returns the error that the caller must use.
func After(_ Point, err error) error { return err }

// Respond is Before and After for the response to a client; err is the result of the request so far.
func Respond(_ Point, err error) error { return err }

// Reached reports that the shutdown has reached a stage.
func Reached(Stage) {}

// Hold waits while a test holds the name.
func Hold(context.Context, string) error { return nil }
