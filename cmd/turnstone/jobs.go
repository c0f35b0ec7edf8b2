package main

import (
	"context"

	"turnstone/actors"
	"turnstone/persistence"
	"turnstone/protocol"
)

// startJobs works the queue of what may be done later: erasing, expiring, titles.
func (s *service) startJobs(ctx context.Context) error {
	jobs, err := persistence.StartJobs(ctx, s.db, persistence.JobWorkers{Title: s.writeTitle})
	if err != nil {
		return err
	}
	s.onClose("the job queue", jobs.Close)
	return nil
}

// writeTitle names a conversation after its first answer, unless the user has.
func (s *service) writeTitle(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, _ protocol.TurnID) error {
	question, reply, err := s.db.TitleInput(ctx, account, conversation)
	if err != nil || question == "" {
		return err
	}
	title, err := actors.WriteTitle(ctx, s.model, s.routes()[protocol.ProfileBalanced], question, reply)
	if err != nil {
		return err
	}
	_, err = s.db.SetAutoTitle(ctx, account, conversation, title)
	return err
}
