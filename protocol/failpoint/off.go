//go:build !failpoint

package failpoint

import "context"

// Before is where a point stands. Its error means: do not do the step.
func Before(Point) error { return nil }

// After takes what came of the step.
func After(_ Point, err error) error { return err }

// Answer is Before and After of an answer to a client, where err is what came of the request so far.
func Answer(_ Point, err error) error { return err }

// Hold is where something waits while a test holds its name.
func Hold(context.Context, string) error { return nil }
