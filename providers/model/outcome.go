package model

import (
	"context"
	"errors"

	"turnstone/actors/llm"
)

// outcome returns the result of the attempt. Of several errors it returns the most precise one, in this order: the
// caller's, our own timeout, the guard's, the provider's error event, and last the decoder's, which means that the
// response is not in the wire format.
func (c *Call) outcome(err error) error {
	var failure *llm.Error
	switch {
	case c.stopped && err == nil:
		return nil
	case c.sinkErr != nil:
		return c.sinkErr
	case c.parent.Err() != nil:
		return c.parent.Err()
	case errors.As(context.Cause(c.ctx), &failure):
	case c.failure != nil:
		failure = c.failure
	case errors.As(err, &failure):
	case err != nil:
		failure = protocolFailure(err)
	case c.events.noEvents():
		failure = protocolFailure(errors.New("the response is not an answer"))
	default:
		failure = unavailable(errors.New("the response ended without its end marker"))
	}
	copied := *failure
	copied.Cut = c.emitted
	return &copied
}
