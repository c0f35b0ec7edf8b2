package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/modelinput"
	"turnstone/actors/routing"
	"turnstone/actors/upload"
	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
	"turnstone/persistence/imports"
	"turnstone/persistence/operator"
	"turnstone/persistence/usage"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// startJobs starts to process the queue of background jobs on this node.
func (s *service) startJobs(ctx context.Context) error {
	sendMail, err := newSendMail(s.config)
	if err != nil {
		return err
	}
	jobs, err := s.db.StartJobs(ctx, persistence.JobWorkers{
		Node:        s.node.ID(),
		SendMail:    sendMail,
		Title:       s.title,
		ReadText:    s.readText,
		ReceiveFile: receiver(s.uploads, &s.config.Limits),
		Observe:     s.telemetry.JobEnded,
		Cancel: operator.Cancel{
			Turn: func(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) error {
				return s.turnHost.CancelTurn(ctx, account, turn, protocol.CancelledByOperator, protocol.CancelTurn)
			},
			Task: func(ctx context.Context, account protocol.AccountID, task protocol.TaskID) error {
				_, err := s.research.Cancel(ctx, account, task)
				if protocol.CodeOf(err) == protocol.CodeConflict { // it has ended
					return nil
				}
				return err
			},
		},
	})
	if err != nil {
		return err
	}
	s.onClose("the background jobs", jobs.Close)
	return nil
}

// receiver returns the function that receives a file of an import, within the limits of an upload.
func receiver(host *upload.Host, limits *settings.Limits) imports.ReceiveFile {
	return func(ctx context.Context, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error) {
		if spec.Size > limits.MaxUploadBytes {
			return nil, protocol.Errorf(protocol.CodeTooLarge, "A file can have at most %d bytes.", limits.MaxUploadBytes)
		}
		spec.CreatedAt = time.Now()
		spec.ExpiresAt = spec.CreatedAt.Add(time.Duration(limits.UploadLifetime))
		return host.ReceiveFile(ctx, spec, open)
	}
}

// readText reads a content. The larger version of a picture is kept only if a model accepts pictures.
func (s *service) readText(ctx context.Context, content io.Reader, mediaType, language string) (*protocol.Extraction, error) {
	read, err := s.extractor.ExtractIn(ctx, content, mediaType, language)
	if err == nil && !s.acceptsPictures() {
		read.Picture = nil
	}
	return read, err
}

// title generates a title for a conversation from its first question and answer, unless its user named it. It tries the
// routes for titles in turn; these are those of the profile balanced unless others are configured.
func (s *service) title(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error {
	question, answer, err := s.db.Conversations.TitleInput(ctx, account, conversation)
	if err != nil || question == "" { // the conversation is gone
		return err
	}
	var text string
	for _, route := range s.models.Title {
		var used llm.Usage
		text, used, err = modelinput.WriteTitle(ctx, s.metered, account, route, question, answer)
		if used != (llm.Usage{}) {
			record := usage.Record{AccountID: account, ConversationID: conversation, Kind: usage.KindTitle, Model: route.Model, Usage: protocol.Usage(used)}
			if err := s.db.Usage.Store(context.WithoutCancel(ctx), &record); err != nil { // also if the job has used up its time
				return err
			}
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	var rejected *llm.Error
	if errors.As(err, &rejected) && !rejected.Retryable {
		s.log.Warn("no title was generated", zap.Stringer("turn", turn), zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.db.Conversations.SetAutoTitle(ctx, account, conversation, text)
	return err
}

// acceptsPictures reports whether any model accepts pictures.
func (s *service) acceptsPictures() bool {
	for _, routes := range s.models.Routes {
		if slices.ContainsFunc(routes, func(route routing.Route) bool { return route.Pictures }) {
			return true
		}
	}
	return false
}
