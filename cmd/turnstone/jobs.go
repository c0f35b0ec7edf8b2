package main

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"turnstone/actors"
	"turnstone/persistence"
	"turnstone/protocol"
)

// startJobs begins to work the queue of background jobs on this node.
func (s *service) startJobs(ctx context.Context) error {
	jobs, err := persistence.StartJobs(ctx, s.db, persistence.JobWorkers{
		Title: s.title,
		CancelTurn: func(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) error {
			return s.node.CancelTurn(ctx, account, turn, protocol.CancelledByOperator)
		},
	})
	if err != nil {
		return err
	}
	s.onClose("the background jobs", jobs.Close)
	return nil
}

// title names a conversation after its first turn, unless its user did. It uses the everyday model: a title is no work
// for a deep one.
func (s *service) title(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error {
	question, answer, err := s.db.TitleInput(ctx, account, conversation)
	if err != nil || question == "" { // it is gone
		return err
	}
	route := s.routes()[protocol.ProfileBalanced]
	title, used, err := actors.WriteTitle(ctx, s.metered, account, route, question, answer)
	if used != (actors.ModelUsage{}) {
		if err := s.db.RecordTitleUsage(ctx, account, conversation, route.Model, protocol.Usage(used)); err != nil {
			return err
		}
	}
	var rejected *actors.ModelError
	if errors.As(err, &rejected) && !rejected.Retryable {
		s.log.Warn("no title was made", zap.Stringer("turn", turn), zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.db.SetAutoTitle(ctx, account, conversation, title)
	return err
}
