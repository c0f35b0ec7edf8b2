package conversations

// Each statement repeats the condition of its index, so that it reads only the entries that it returns.
const (
	conversationKeys = `
		select c.conversation_id, c.pinned_at is not null as pinned, c.last_activity_at
		from conversations c
		where c.account_id = @account and c.deleted_at is null and not c.temporary
		  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) < (@after_pinned, @after_activity, @after)
		  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) >= (@until_pinned, @until_activity, @until)`
	conversationOrder = `
		order by (c.pinned_at is not null) desc, c.last_activity_at desc, c.conversation_id desc
		limit @limit`
	openConversations     = ` and c.archived_at is null`
	archivedConversations = ` and c.archived_at is not null`
	// The indexes of all conversations skip those of deleted projects. Until a deleted project was removed from them, its
	// conversations are read and left out.
	anyOpen     = conversationKeys + openConversations + ` and not c.hidden and ` + Visible
	anyArchived = conversationKeys + archivedConversations + ` and not c.hidden and ` + Visible
	// A list of one project checks the project once.
	inProject = ` and c.project_id = @project
		  and (select p.deleted_at is null from projects p where p.account_id = @account and p.project_id = @project)`
	projectOpen     = conversationKeys + openConversations + inProject
	projectArchived = conversationKeys + archivedConversations + inProject

	listConversationsHead = `
	select ` + conversationColumns + `
	from (select conversation_id, pinned, last_activity_at from (`
	listConversationsTail = `) keys order by pinned desc, last_activity_at desc, conversation_id desc limit @limit) keys
	cross join lateral (
		select ` + conversationFields + `
		from conversations where account_id = @account and conversation_id = keys.conversation_id limit 1) c
	cross join lateral (select head_message_id from branches where account_id = @account and branch_id = c.active_branch_id limit 1) b
	order by keys.pinned desc, keys.last_activity_at desc, keys.conversation_id desc`

	walkHead = `
	select conversation_id, pinned, last_activity_at from (`
	walkTail = `) keys order by pinned desc, last_activity_at desc, conversation_id desc limit @limit`
)

// listStatements list the conversations of a filter, or read only their keys.
type listStatements struct{ list, walk string }

func statementsOf(keys string) *listStatements {
	return &listStatements{listConversationsHead + keys + listConversationsTail, walkHead + keys + walkTail}
}

var (
	listOpen            = statementsOf(anyOpen + conversationOrder)
	listArchived        = statementsOf(anyArchived + conversationOrder)
	listAll             = statementsOf(`(` + anyOpen + conversationOrder + `) union all (` + anyArchived + conversationOrder + `)`)
	listProjectOpen     = statementsOf(projectOpen + conversationOrder)
	listProjectArchived = statementsOf(projectArchived + conversationOrder)
	listProjectAll      = statementsOf(`(` + projectOpen + conversationOrder + `) union all (` + projectArchived + conversationOrder + `)`)
)

// statements returns the statements for the filter.
func (f *ConversationFilter) statements() *listStatements {
	inProject := f.ProjectID != nil
	switch {
	case f.Archived == nil && inProject:
		return listProjectAll
	case f.Archived == nil:
		return listAll
	case *f.Archived && inProject:
		return listProjectArchived
	case *f.Archived:
		return listArchived
	case inProject:
		return listProjectOpen
	default:
		return listOpen
	}
}
