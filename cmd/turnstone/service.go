package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/turn"
	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
)

// WaitAndShutDown waits until ctx ends or a part of the service fails, then shuts everything down. If ctx ended, the
// node drains first: it is not ready, refuses new turns, lets live turns end within grace and releases the rest for
// other nodes. Then the parts close in the reverse order of the start, the listeners first.
func (s *service) WaitAndShutDown(ctx context.Context, grace time.Duration) error {
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.failed:
	}
	ctx = context.WithoutCancel(ctx)
	if failure == nil {
		s.log.Info("draining", zap.Duration("grace", grace))
		if err := s.node.Drain(ctx, grace); err != nil {
			s.log.Warn("turns were not released; another node takes them over when the lease expires", zap.Error(err))
		}
	}
	return errors.Join(failure, s.close(ctx))
}

// fail makes the service shut down with err. Only the first failure counts.
func (s *service) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// onClose registers an undo function for close, which calls them in reverse order. what names the part in error
// messages.
func (s *service) onClose(what string, undo func(context.Context) error) {
	s.undo = append(s.undo, func(ctx context.Context) error {
		if err := undo(ctx); err != nil {
			return fmt.Errorf("stopping %s: %w", what, err)
		}
		return nil
	})
}

func (s *service) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settings.StopTimeout)
	defer cancel()
	var failures []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		failures = append(failures, s.undo[i](ctx))
	}
	s.undo = nil
	return errors.Join(failures...)
}

// Stores returns the stores of the service.
func (s *service) Stores() *persistence.Stores { return s.db }

// Turns returns the host of the turns.
func (s *service) Turns() *turn.Host { return s.turnHost }

// ModelFamily names the kind of the model.
func (s *service) ModelFamily() string { return s.model.Family() }
