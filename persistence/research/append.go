package research

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/persistence/usage"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

const (
	// appendSQL is the fence: owner, epoch, next sequence and next entry of the task must be those of the batch. An adoption alone is no
	// progress, so it does not reset the attempts.
	appendSQL = `
	update research_tasks t set state = @state, body = @body, version = @version, attempts = case when @progress then 0 else attempts end,
		owner = case when @rests then null else owner end, next_sequence = @last + 1, next_entry = @first_entry + @entries,
		finished_at = case when @ended then @at::timestamptz end
	where account_id = @account and task_id = @task and owner = @owner and owner_epoch = @epoch and next_sequence = @first and next_entry = @first_entry
	  and ` + open.Tasks + ` and not hidden
	returning conversation_id`
	storedSQL = `
	select owner_epoch = @epoch and next_sequence > @last and next_entry - @entries >= @first_entry
	from research_tasks where account_id = @account and task_id = @task`
	insertEntriesSQL = `
	insert into research_entries (account_id, task_id, number, body)
	select @account, @task, @first_entry + e.n - 1, e.body from unnest(@bodies::bytea[]) with ordinality as e (body, n)`
	storeSourcesSQL = `
	insert into research_sources (account_id, task_id, ordinal, body)
	select @account, @task, s.ordinal, s.body::json from unnest(@ordinals::int[], @sources::text[]) as s (ordinal, body)
	on conflict (account_id, task_id, ordinal) do update set body = excluded.body`
)

// Append stores a batch, with the report and the held follow-ups that it ends with, in one transaction. A repeat of a stored batch succeeds without an
// effect. The error is ownership.ErrFenced if another owner or epoch has the task, or its conversation was deleted.
func (s *Store) Append(ctx context.Context, b *researchlog.Append) error {
	args, err := appendArgs(b)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, b.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		if b.Report != nil || len(b.Returned) > 0 { // first, as everything that changes a conversation locks it
			locked, err := conversations.LockConversation(ctx, tx, b.AccountID, b.Task.ConversationID)
			if err != nil {
				return err
			}
			if b.Report != nil {
				err = s.report(ctx, tx, b, locked)
			}
			if err != nil {
				return err
			}
		}
		var conversation protocol.ConversationID
		err := tx.QueryRow(ctx, appendSQL, args).Scan(&conversation)
		if errors.Is(err, pgx.ErrNoRows) {
			return pg.Fenced(ctx, tx, storedSQL, args)
		}
		if err != nil {
			return fmt.Errorf("storing a batch of a research task: %w", err)
		}
		args["conversation"] = conversation
		batch := &pgx.Batch{}
		if len(b.Frames) > 0 {
			batch.Queue(insertEventsSQL, args)
		}
		batch.Queue(insertEntriesSQL, args)
		if len(b.Sources) > 0 {
			batch.Queue(storeSourcesSQL, args)
		}
		if b.Task.State.Terminal() && b.Task.Spent.Tokens > 0 {
			err := usage.Queue(batch, &usage.Record{
				AccountID: b.AccountID, ConversationID: conversation, Kind: usage.KindResearch, Usage: b.Usage, At: b.At,
			})
			if err != nil {
				return err
			}
		}
		queues.AppendReturned(batch, b.AccountID, conversation, b.At, b.Returned)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("storing a batch of a research task: %w", err)
		}
		return nil
	})
	switch {
	case errors.Is(err, pg.ErrStored):
		return nil
	case protocol.CodeOf(err) == protocol.CodeNotFound: // the conversation was deleted or purged
		return ownership.ErrFenced
	}
	return err
}

func appendArgs(b *researchlog.Append) (pgx.NamedArgs, error) {
	body, err := pg.JSONText(&b.Task)
	if err != nil {
		return nil, err
	}
	bodies := make([][]byte, len(b.Entries))
	for i := range b.Entries {
		if bodies[i], err = json.Marshal(&b.Entries[i]); err != nil {
			return nil, err
		}
	}
	ordinals, sources := make([]int, len(b.Sources)), make([]string, len(b.Sources))
	for i := range b.Sources {
		text, err := pg.JSONText(&b.Sources[i].ResearchKeptSource)
		if err != nil {
			return nil, err
		}
		ordinals[i], sources[i] = b.Sources[i].Ordinal, string(text)
	}
	return pgx.NamedArgs{
		"account": b.AccountID, "task": b.TaskID, "owner": b.Owner, "epoch": b.Epoch, "first": b.First, "last": b.Last, "frames": b.Frames,
		"first_entry": b.FirstEntry, "entries": len(b.Entries), "progress": slices.ContainsFunc(b.Entries, progress), "bodies": bodies, "ordinals": ordinals, "sources": sources,
		"state": string(b.Task.State), "body": body, "version": b.Task.Version, "ended": b.Task.State.Terminal(),
		"rests": b.Task.State.Terminal() || b.Task.State == protocol.ResearchQueued, "at": b.At,
	}, nil
}

func progress(e researchlog.Entry) bool { return e.Kind != researchlog.EntryAdopt }

// report stores the report of a task as an artifact, and the message with it as the new head of the active branch.
func (s *Store) report(ctx context.Context, tx *pg.Tx, b *researchlog.Append, locked *conversations.LockedConversation) error {
	var stored bool
	err := tx.QueryRow(ctx, `select true from messages where account_id = $1 and message_id = $2`, b.AccountID, b.Report.MessageID).Scan(&stored)
	if err == nil { // a repeat: the fence decides
		return nil
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("reading the message of a report: %w", err)
	}
	artifact, err := s.artifacts.CreateReport(ctx, tx, b.AccountID, locked, b.Report)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if err := conversations.AppendMessage(batch, b.AccountID, locked.ActiveBranchID, b.Report.MessageID, reportParts(b.Report, artifact), b.At); err != nil {
		return err
	}
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("storing the message of a report: %w", err)
	}
	return nil
}

// reportParts returns the parts of the message with a report: the summary with its citations, and the artifact.
func reportParts(r *researchlog.Report, artifact *protocol.Artifact) []protocol.Part {
	var parts []protocol.Part
	if r.Notice != "" {
		parts = append(parts, protocol.Part{Type: protocol.PartText, PartID: r.PartIDs[0], Text: r.Notice, Citations: r.Citations})
	}
	return append(parts, protocol.Part{
		Type: protocol.PartArtifact, PartID: r.PartIDs[1], ArtifactID: &artifact.ArtifactID, Version: artifact.Version, Kind: string(artifact.Kind),
		Title: artifact.Title, CreatedBy: artifact.CreatedBy,
	})
}
