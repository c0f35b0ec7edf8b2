package turns

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/accounts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/memory"
	"turnstone/persistence/pg"
)

const (
	lockForTurnSQL = `
select active_branch_id, live_turn_id, profile, queue_version, project_id, temporary
from conversations c where c.account_id = $1 and c.conversation_id = $2 and ` + conversations.Visible + `
for update of c`
	// A separate statement, so that it sees what the previous holder of the lock committed.
	branchHeadSQL = `
select b.head_message_id, b.head_depth, m.role, m.parent_message_id, case when m.role = 'user' then m.parts end, coalesce(m.attachments, '{}'), m.profile
from conversations c
join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
left join messages m on m.account_id = b.account_id and m.message_id = b.head_message_id
where c.account_id = $1 and c.conversation_id = $2`
)

// accountFacts returns the columns that a start reads of its account and of the node.
func accountFacts(account, node string) string {
	return conversations.LiveTurnsOf(account) + `,
       ` + pg.NodeClaims(node) + `,
       (select settings ->> 'default_profile' from account_settings where account_id = ` + account + `),
       ` + memory.GrantedSQL(account) + `,
       ` + accounts.InstructionsVersionSQL(account)
}

// $3 is the conversation and $4 the project of a new one; either may be null. The project is read after the account was
// locked: a deletion of the project locks the account too.
var startFactsSQL = `
select ` + accountFacts("$1", "$2") + `,
       p.project_id, p.state, p.settings ->> 'default_profile', coalesce(p.instructions_version, 0), p.settings -> 'tools', coalesce(p.settings ->> 'approval_policy', '')
from (values (1)) one
left join lateral (
    select project_id, state, settings, instructions_version from projects
    where account_id = $1 and project_id = (
        select project_id from conversations where account_id = $1 and conversation_id = $3
        union all select $4::uuid where $3::uuid is null)
    limit 1) p on true`

var siblingPointSQL = `
select m.branch_id, m.depth, m.role, m.parent_message_id, ` + conversations.NestingSQL + `, p.parent_message_id, case when p.role = 'user' then p.parts end, coalesce(p.attachments, '{}'), coalesce(p.profile, m.profile)
from messages m
left join messages p on p.account_id = m.account_id and p.message_id = m.parent_message_id
where m.account_id = $1 and m.conversation_id = $2 and m.message_id = $3`

// queueConversation adds the statements that lock an existing conversation and read what a start depends on in it.
func (r request) queueConversation(batch *pgx.Batch, c *startConversation) {
	var head bool
	batch.Queue(lockForTurnSQL, r.AccountID, *r.ConversationID).QueryRow(optional(&c.found, &c.branch, &c.live, &c.profile, &c.queueVersion, &c.project, &c.temporary))
	batch.Queue(branchHeadSQL, r.AccountID, *r.ConversationID).
		QueryRow(optional(&head, &c.head, &c.headDepth, &c.headRole, &c.headParent, &c.headParts, &c.headFiles, &c.headProfile))
}

// queueFacts adds the statement that reads what a start depends on outside of its conversation.
func (r request) queueFacts(batch *pgx.Batch, f *startFacts) {
	batch.Queue(startFactsSQL, r.AccountID, r.on.NodeID, r.ConversationID, r.ProjectID).QueryRow(func(row pgx.Row) error {
		p := &f.project
		return row.Scan(append(f.account(), &p.id, &p.state, &p.defaultProfile, &p.instructions, &p.tools, &p.approvals)...)
	})
}

// account returns the targets of the columns of accountFacts.
func (f *startFacts) account() []any {
	return []any{&f.liveTurns, &f.ownerAlive, &f.defaultProfile, &f.granted, &f.instructions}
}

// scanSibling scans the row of siblingPointSQL, which may be missing.
func (f *startFacts) scanSibling(row pgx.Row) error {
	p := &siblingPoint{}
	var found bool
	err := optional(&found, &p.BranchID, &p.Depth, &p.Role, &p.ParentMessageID, &p.Nesting, &p.grandparent, &p.parentParts, &p.parentFiles, &p.previous)(row)
	if found {
		f.sibling = p
	}
	return err
}

// optional returns a callback that scans a row that may be missing.
func optional(found *bool, targets ...any) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(targets...)
		*found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
}
