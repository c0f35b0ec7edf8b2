package search

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/memory"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// pastRounds limits the searches of one FindPast: what it may not return does not fill its page.
const pastRounds = 3

// reach is which other conversations a conversation may read.
type reach struct {
	temporary bool
	granted   []protocol.MemorySource
	project   *protocol.ProjectID // of the conversation now
	closed    bool                // the memory of that project is only the project
}

const (
	reachSQL = `
	select c.temporary, c.project_id, coalesce(p.settings ->> 'memory_scope' = 'project', false)
	from conversations c
	left join projects p on p.account_id = c.account_id and p.project_id = c.project_id
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible
	// openProjectsSQL selects those of some projects whose memory is that of the account.
	openProjectsSQL = `
	select project_id from projects
	where account_id = @account and project_id = any (@projects) and state <> 'deleted' and coalesce(settings ->> 'memory_scope' <> 'project', true)`
)

var grantedSQL = `select ` + memory.GrantedSQL("@account")

// FindPast searches the titles and the messages of the other conversations of an account: with the consent to conversations those
// in no project and in the project of the conversation, and with the consent to projects also those in other projects. Nothing
// enters or leaves a project whose memory is its own. The error is a *turnlog.Refusal if nothing may be read. The consents are read
// again after the search, so nothing is returned after a revocation was committed.
func (s *Store) FindPast(ctx context.Context, q *turnlog.PastQuery) (*turnlog.PastPage, error) {
	query := &Query{Text: q.Text, From: q.From, To: q.To, Past: true}
	if q.After != "" {
		if query.After = openPast(q.After); query.After == nil {
			return nil, &turnlog.Refusal{Code: turnlog.RefusedInput, Detail: "The cursor is not one of this tool."}
		}
	}
	r, _, err := s.reach(ctx, q, nil)
	if err != nil {
		return nil, err
	}
	if r.closed {
		query.ProjectID = r.project
	}
	page := &turnlog.PastPage{}
	for range pastRounds {
		query.Limit = q.Limit - len(page.Found)
		found, next, err := s.Find(ctx, q.AccountID, query)
		if err != nil {
			return nil, err
		}
		allowed, err := s.allowed(ctx, q, found)
		if err != nil {
			return nil, err
		}
		page.Found = append(page.Found, allowed...)
		query.After, page.Next = next, sealPast(next)
		if next == nil || len(page.Found) >= q.Limit {
			break
		}
	}
	return page, nil
}

// allowed returns the results that the conversation of a query may read now.
func (s *Store) allowed(ctx context.Context, q *turnlog.PastQuery, found []protocol.SearchResult) ([]protocol.SearchResult, error) {
	var projects []protocol.ProjectID
	for i := range found {
		if p := found[i].ProjectID; p != nil && !slices.Contains(projects, *p) {
			projects = append(projects, *p)
		}
	}
	r, open, err := s.reach(ctx, q, projects)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(f protocol.SearchResult) bool {
		switch {
		case *f.ConversationID == q.ConversationID:
			return true
		case r.project != nil && f.ProjectID != nil && *f.ProjectID == *r.project:
			return false
		case r.closed:
			return true
		}
		return f.ProjectID != nil && !(slices.Contains(r.granted, protocol.SourceProjects) && slices.Contains(open, *f.ProjectID))
	}), nil
}

// reach returns what the conversation of a query may read, and which of some projects are open to it. The error is a
// *turnlog.Refusal if it may read nothing.
func (s *Store) reach(ctx context.Context, q *turnlog.PastQuery, projects []protocol.ProjectID) (r reach, open []protocol.ProjectID, err error) {
	args := pgx.NamedArgs{"account": q.AccountID, "conversation": q.ConversationID, "projects": projects}
	batch := &pgx.Batch{}
	batch.Queue(openProjectsSQL, args).Query(func(rows pgx.Rows) (err error) {
		open, err = pgx.CollectRows(rows, pgx.RowTo[protocol.ProjectID])
		return err
	})
	batch.Queue(reachSQL, args).QueryRow(func(row pgx.Row) error { return row.Scan(&r.temporary, &r.project, &r.closed) })
	batch.Queue(grantedSQL, args).QueryRow(func(row pgx.Row) error { return row.Scan(&r.granted) })
	err = s.db.Send(ctx, q.AccountID, batch)
	switch {
	case err != nil:
		return r, nil, fmt.Errorf("reading the consents of a search: %w", err)
	case r.temporary:
		return r, nil, &turnlog.Refusal{Code: turnlog.RefusedTemporary, Detail: "A temporary conversation does not read other conversations."}
	case !slices.Contains(r.granted, protocol.SourceConversations):
		return r, nil, &turnlog.Refusal{Code: turnlog.RefusedConsent, Detail: "The user does not allow other conversations to be read. It can be allowed in the settings."}
	}
	return r, open, nil
}

const pastTextSQL = `
	select coalesce(nullif(c.title, ''), c.provisional_title, ''), c.project_id, coalesce((
		select string_agg(t.text, E'\n\n' order by t.depth) from (
			select m.depth, left(p ->> 'text', 100000) as text
			from messages m, json_array_elements(m.parts) p
			where m.account_id = @account and m.conversation_id = c.conversation_id and p ->> 'type' = 'text'
				and m.branch_id = coalesce((select branch_id from messages where account_id = @account and message_id = @message), c.active_branch_id)
				and m.depth between coalesce((select depth from messages where account_id = @account and message_id = @message), 1) - 2
					and coalesce((select depth from messages where account_id = @account and message_id = @message), 1) + 4) t), '')
	from conversations c
	where c.account_id = @account and c.conversation_id = @past and ` + conversations.Visible

// ReadPast reads the messages around one of another conversation, or with nil its first ones. The errors are those of FindPast,
// and protocol.CodeNotFound if the conversation of the scope may not read that one.
func (s *Store) ReadPast(ctx context.Context, scope turnlog.Scope, conversation protocol.ConversationID, message *protocol.MessageID) (title, text string, err error) {
	found := protocol.SearchResult{ConversationID: &conversation, MessageID: message}
	batch := &pgx.Batch{}
	batch.Queue(pastTextSQL, pgx.NamedArgs{"account": scope.AccountID, "past": conversation, "message": message}).QueryRow(func(row pgx.Row) error {
		return row.Scan(&title, &found.ProjectID, &text)
	})
	if err := s.db.Send(ctx, scope.AccountID, batch); err != nil {
		return "", "", fmt.Errorf("reading another conversation: %w", err)
	}
	allowed, err := s.allowed(ctx, &turnlog.PastQuery{Scope: scope}, []protocol.SearchResult{found})
	if err != nil {
		return "", "", err
	}
	if len(allowed) == 0 {
		return "", "", &protocol.Error{Code: protocol.CodeNotFound}
	}
	return title, text, nil
}

// sealPast returns the text of a position; openPast reads it. A text that the model has changed selects other results of the same
// query only, so it is not signed.
func sealPast(at *Position) string {
	if at == nil {
		return ""
	}
	text, err := json.Marshal(at)
	if err != nil {
		panic("search: a position cannot be encoded: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func openPast(text string) *Position {
	at := &Position{}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if errors.Join(err, json.Unmarshal(decoded, at)) != nil || !slices.Contains(pastKinds, at.Kind) {
		return nil
	}
	return at
}
