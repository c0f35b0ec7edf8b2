package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// untilDone runs until ctx ends or a part of the service fails, then takes everything down: not ready, no new turns, the
// live ones may end within grace, the rest is handed on; then the listeners, then what they used, in the opposite order
// of the start.
func (s *service) untilDone(ctx context.Context, grace time.Duration) error {
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.failed:
	}
	ctx = context.WithoutCancel(ctx)
	if failure == nil {
		s.log.Info("draining", zap.Duration("grace", grace))
		if err := s.node.Drain(ctx, grace); err != nil {
			s.log.Warn("turns were not handed on; whoever starts next finds them by the lease", zap.Error(err))
		}
	}
	return errors.Join(failure, s.close(ctx))
}

// fail ends the service for a reason; the first one counts.
func (s *service) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// onClose adds what is to be undone at the end, the last first.
func (s *service) onClose(what string, undo func(context.Context) error) {
	s.undo = append(s.undo, func(ctx context.Context) error {
		if err := undo(ctx); err != nil {
			return fmt.Errorf("stopping %s: %w", what, err)
		}
		return nil
	})
}

func (s *service) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var failures []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		failures = append(failures, s.undo[i](ctx))
	}
	s.undo = nil
	return errors.Join(failures...)
}
