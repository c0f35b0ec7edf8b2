package imports

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/imports/source"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// maxGrown limits the messages of a conversation that gets the new messages of an export.
const maxGrown = 40_000

const (
	messagesOfSQL = `
	select message_id, branch_id, depth, parent_message_id, sibling_index, json_array_length(parts)
	from messages where account_id = @account and conversation_id = @conversation
	order by depth, message_id
	limit @limit`
	branchesOfSQL = `
	select b.branch_id, b.head_message_id, b.head_depth, s.source_branch_id, s.from_depth, s.to_depth
	from branches b join branch_segments s on s.account_id = b.account_id and s.branch_id = b.branch_id
	where b.account_id = @account and b.conversation_id = @conversation
	order by b.branch_id, s.from_depth`
	moveHeadSQL = `
	update branches set head_message_id = @head, head_depth = @depth, version = version + 1 where account_id = @account and branch_id = @branch`
	grownSQL = `
	update conversations
	set message_count = message_count + @count, version = version + 1, updated_at = now(), last_activity_at = greatest(last_activity_at, @activity)
	where account_id = @account and conversation_id = @conversation`
)

type storedMessage struct {
	ID            protocol.MessageID
	Branch        protocol.BranchID
	Depth         int
	Parent        *protocol.MessageID
	Sibling, Size int
}

type storedSegment struct {
	Branch      protocol.BranchID
	Head        *protocol.MessageID
	HeadDepth   int
	Source      protocol.BranchID
	First, Last int
}

// growth adds to a conversation of an earlier import what it has gained since. Each transaction reads what is there, so it does not
// matter what an earlier run or the account has written meanwhile.
type growth struct {
	*writing
	exported *source.Tree // of the export
	ids      []protocol.MessageID
	texts    []string
	sizes    []int // the numbers of parts

	here  map[protocol.MessageID]int // the stored messages, and those that are added
	heads map[int]bool               // branches whose heads have moved
	added int
	cut   int // messages that have no place

	segments int // of all branches
}

// grow imports the messages that a conversation has gained since an earlier import. What the account has written stays.
func (w *writing) grow(ctx context.Context, existing protocol.ConversationID) error {
	w.id = existing
	if w.c.Kind == protocol.ImportFromTurnstone {
		return w.skip(ctx, protocol.ImportAlreadyImported, &existing)
	}
	if err := w.link(ctx); err != nil {
		return err
	}
	g := &growth{writing: w, exported: w.tree}
	for i := range w.tree.Messages {
		g.sizes = append(g.sizes, len(w.tree.Messages[i].Parts))
	}
	w.prepare()
	g.ids, g.texts = w.messages, w.parts
	total := 0
	for more := true; more; {
		var err error
		if more, err = g.step(ctx, total); err != nil {
			return err
		}
		total += g.added
	}
	return nil
}

// step adds messages in a transaction, up to the limits of one, and reports whether more follow. before is the number of those that other
// transactions have added.
func (g *growth) step(ctx context.Context, before int) (more bool, err error) {
	noted := false
	err = g.db.InTx(ctx, g.account, func(ctx context.Context, tx *pg.Tx) error {
		g.at, g.added, g.cut = position{begun: true}, 0, 0
		_, err := conversations.LockConversation(ctx, tx, g.account, g.id)
		gone := protocol.CodeOf(err) == protocol.CodeNotFound
		if err != nil && !gone {
			return err
		}
		kept := 0
		if !gone {
			if kept, err = g.load(ctx, tx); err != nil {
				return err
			}
			more = g.place()
		}
		if g.added > 0 {
			if err := g.write(ctx, tx); err != nil {
				return err
			}
		}
		if more {
			return g.count(ctx, tx, pgx.NamedArgs{"messages": g.added})
		}
		if !noted {
			g.noteGrowth(before+g.added, kept)
			noted = true
		}
		return g.countGrown(ctx, tx, before+g.added)
	})
	return more, err
}

// noteGrowth notes what was added, and what was not.
func (g *growth) noteGrowth(added, kept int) {
	if added == 0 && kept == 0 && g.cut == 0 {
		g.note(protocol.ImportEntry{Reason: protocol.ImportAlreadyImported, Title: g.c.Title, ConversationID: &g.id, Count: 1})
		return
	}
	if added > 0 {
		g.noteAll(&g.id)
		g.note(protocol.ImportEntry{Reason: protocol.ImportMessagesAdded, Title: g.c.Title, ConversationID: &g.id, Count: added})
	}
	if g.cut > 0 {
		g.note(protocol.ImportEntry{Reason: protocol.ImportMessagesCut, Title: g.c.Title, ConversationID: &g.id, Count: g.cut})
	}
	if kept > 0 {
		g.note(protocol.ImportEntry{Reason: protocol.ImportMessagesKept, Title: g.c.Title, ConversationID: &g.id, Count: kept})
	}
}

func (g *growth) countGrown(ctx context.Context, tx *pg.Tx, added int) error {
	report, err := pg.JSONText(&g.report)
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{"handled": 1, "skipped": 1, "messages": g.added, "report": report}
	if added > 0 {
		args["skipped"], args["updated"] = 0, 1
	}
	return g.count(ctx, tx, args)
}

// load reads the stored messages and branches into the tree that is written. kept is the number of messages that have more parts in the export.
func (g *growth) load(ctx context.Context, tx *pg.Tx) (kept int, err error) {
	args := pgx.NamedArgs{"account": g.account, "conversation": g.id, "limit": maxGrown + 1}
	rows, err := tx.Query(ctx, messagesOfSQL, args)
	if err != nil {
		return 0, fmt.Errorf("reading the messages of a conversation: %w", err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[storedMessage])
	if err != nil {
		return 0, fmt.Errorf("reading the messages of a conversation: %w", err)
	}
	if rows, err = tx.Query(ctx, branchesOfSQL, args); err != nil {
		return 0, fmt.Errorf("reading the branches of a conversation: %w", err)
	}
	segments, err := pgx.CollectRows(rows, pgx.RowToStructByPos[storedSegment])
	if err != nil {
		return 0, fmt.Errorf("reading the branches of a conversation: %w", err)
	}
	g.tree, g.messages, g.parts, g.branches = &source.Tree{}, nil, nil, nil
	g.here, g.heads = make(map[protocol.MessageID]int, len(messages)), map[int]bool{}
	branches := map[protocol.BranchID]int{}
	for _, s := range segments {
		if _, known := branches[s.Branch]; !known {
			branches[s.Branch] = len(g.branches)
			g.branches = append(g.branches, s.Branch)
		}
	}
	g.segments = len(segments)
	sizes := map[[8]byte]int{}
	for i := range messages {
		m := &messages[i]
		g.here[m.ID] = i
		sizes[tail(m.ID)] = m.Size
		parent := -1
		if m.Parent != nil {
			if at, known := g.here[*m.Parent]; known {
				parent = at
			}
		}
		g.messages, g.parts = append(g.messages, m.ID), append(g.parts, "")
		g.tree.Messages = append(g.tree.Messages, source.Placed{ParentIndex: parent, Branch: branches[m.Branch], Depth: m.Depth, SiblingIndex: m.Sibling})
	}
	g.tree.Branches = make([]source.Branch, len(g.branches))
	for _, s := range segments {
		b := &g.tree.Branches[branches[s.Branch]]
		b.Head, b.HeadDepth = -1, s.HeadDepth
		if s.Head != nil {
			b.Head = g.here[*s.Head]
		}
		last := s.Last
		if last == math.MaxInt32 {
			last = 0
		}
		b.Segments = append(b.Segments, source.Segment{Source: branches[s.Source], From: s.First, To: last})
	}
	for i := range g.ids {
		if size, stored := sizes[tail(g.ids[i])]; stored && size < g.sizes[i] {
			kept++
		}
	}
	return kept, nil
}

// tail returns the derived half of an identifier.
func tail(id protocol.MessageID) [8]byte { return [8]byte(id[8:]) }

// place puts the new messages of the export after those that are here, and reports whether more are left than one transaction writes.
func (g *growth) place() (more bool) {
	stored := make(map[[8]byte]int, len(g.here))
	siblings := map[int]int{}
	for id, at := range g.here {
		stored[tail(id)] = at
		parent := g.tree.Messages[at].ParentIndex
		siblings[parent] = max(siblings[parent], g.tree.Messages[at].SiblingIndex+1)
	}
	at, found := make([]int, len(g.ids)), 0
	shown := map[int]bool{} // parents whose new message was shown in the export
	for i := range g.ids {
		at[i] = -1
		if here, is := stored[tail(g.ids[i])]; is {
			at[i] = here
			found++
		} else if g.exported.Messages[i].Branch == g.exported.Active {
			shown[g.exported.Messages[i].ParentIndex] = true
		}
	}
	g.at.message, g.at.branch = len(g.messages), len(g.branches)
	if found == 0 { // it was imported by a version that did not derive the identifiers
		return false
	}
	size := 0
	for i := range g.ids {
		if at[i] >= 0 {
			continue
		}
		if len(g.messages) >= maxGrown {
			g.cut++
			continue
		}
		if g.added >= batchMessages || size >= batchBytes {
			return true
		}
		from := g.exported.Messages[i]
		p := source.Placed{Message: from.Message, ParentIndex: -1, Depth: 1}
		if from.ParentIndex >= 0 {
			if p.ParentIndex = at[from.ParentIndex]; p.ParentIndex < 0 {
				g.cut++
				continue
			}
			p.Depth = g.tree.Messages[p.ParentIndex].Depth + 1
		}
		if p.Branch = g.branchAfter(p.ParentIndex, from.Branch == g.exported.Active || !shown[from.ParentIndex]); p.Branch < 0 {
			g.cut++
			continue
		}
		p.SiblingIndex = siblings[p.ParentIndex]
		siblings[p.ParentIndex]++
		at[i] = len(g.messages)
		b := &g.tree.Branches[p.Branch]
		b.Head, b.HeadDepth = at[i], p.Depth
		g.heads[p.Branch] = true
		g.messages, g.parts, g.tree.Messages = append(g.messages, g.ids[i]), append(g.parts, g.texts[i]), append(g.tree.Messages, p)
		g.added, size = g.added+1, size+len(g.texts[i])
	}
	return false
}

// branchAfter returns the branch for a message after another one: its own, if that ends there, or a new one; -1: there are too many.
func (g *growth) branchAfter(parent int, continues bool) int {
	if parent >= 0 && continues {
		if of := g.tree.Messages[parent].Branch; g.tree.Branches[of].Head == parent {
			return of
		}
	}
	b, fits := g.tree.BranchAfter(parent, g.segments)
	if !fits {
		return -1
	}
	g.segments += len(b.Segments)
	g.tree.Branches, g.branches = append(g.tree.Branches, b), append(g.branches, protocol.NewBranchID())
	return len(g.tree.Branches) - 1
}

// write stores what place has added.
func (g *growth) write(ctx context.Context, tx *pg.Tx) error {
	first := g.at.branch
	for _, step := range []func(context.Context, *pg.Tx) (bool, error){g.writeBranches, g.writeMessages} {
		for more := true; more; {
			var err error
			from := g.at
			if more, err = step(ctx, tx); err != nil {
				return err
			}
			more = more && g.at != from
		}
	}
	batch := &pgx.Batch{}
	activity := time.Time{}
	for i := len(g.messages) - g.added; i < len(g.messages); i++ {
		if at := g.tree.Messages[i].CreatedAt; at.After(activity) {
			activity = at
		}
	}
	for n := range g.heads {
		if n < first {
			b := &g.tree.Branches[n]
			batch.Queue(moveHeadSQL, pgx.NamedArgs{"account": g.account, "branch": g.branches[n], "head": g.messages[b.Head], "depth": b.HeadDepth})
		}
	}
	batch.Queue(grownSQL, pgx.NamedArgs{"account": g.account, "conversation": g.id, "count": g.added, "activity": activity})
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("adding messages to an imported conversation: %w", err)
	}
	return nil
}
