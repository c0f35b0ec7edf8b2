package source

import (
	"cmp"
	"slices"

	"turnstone/protocol"
)

// Limits of the branches of one conversation. A branch has one segment for each branch on its path.
const (
	maxNesting  = 1000 // as for branches that users create
	maxSegments = 50_000
)

// Tree is the messages of a conversation on branches, as they are stored: depths count from 1, and a branch shows
// messages of the branches on its path up to given depths, then its own.
type Tree struct {
	Messages []Placed
	Branches []Branch
	Active   int // the branch that is shown
}

// Placed is a message with its place. Indexes refer to the lists of the Tree.
type Placed struct {
	Message
	ParentIndex  int // -1: none
	Branch       int
	Depth        int
	SiblingIndex int
}

// Branch is a path of messages.
type Branch struct {
	Base, Head int // messages; -1: none
	HeadDepth  int
	Source     *OwnBranch // nil: none
	Segments   []Segment
}

// Segment is a range of depths that a branch shows; 0 stands for an open end.
type Segment struct{ Source, From, To int }

// BranchAfter returns a further branch, which shows the path to a message, and has its own messages after it. -1: it shows no other
// messages. It does not fit if it is too nested, or if all branches have too many segments already.
func (t *Tree) BranchAfter(message, segments int) (b Branch, fits bool) {
	b = Branch{Base: message, Head: message}
	if message >= 0 {
		from := &t.Messages[message]
		b.HeadDepth = from.Depth
		for _, s := range t.Branches[from.Branch].Segments {
			if s.From > from.Depth {
				break
			}
			if s.To == 0 || s.To > from.Depth {
				s.To = from.Depth
			}
			b.Segments = append(b.Segments, s)
		}
	}
	if len(b.Segments) >= maxNesting || segments > maxSegments {
		return b, false
	}
	b.Segments = append(b.Segments, Segment{Source: len(t.Branches), From: b.HeadDepth + 1})
	return b, true
}

// Arrange places the messages of a conversation on branches. In an export of this service, each message names its branch. In
// others, the path that was shown becomes the first branch; a message at which another path leaves it starts a branch. It
// adds to the notes what it leaves out.
func (c *Conversation) Arrange() *Tree {
	a := &arrangement{c: c, tree: &Tree{}, first: none}
	a.link()
	a.order()
	a.merge()
	if c.own() {
		a.declare()
		a.place(nil)
		a.placeEmpty()
		return a.tree
	}
	a.first = a.branchAfter(none, nil)
	a.place(a.activePath())
	return a.tree
}

const none = -1

type arrangement struct {
	c        *Conversation
	tree     *Tree
	parent   []int   // of each node; -1: none
	children [][]int // of each node
	visible  []int   // for each node: itself or its nearest visible ancestor; -1: none
	merged   []int   // for each visible node: the node whose message has its parts
	walk     []int   // nodes, parents before children
	at       []int   // for each node: its index in the tree; -1: not placed

	first    int // the branch of the path that was shown; none: each message names its branch
	segments int
	declared map[string]*declared // by identifier
}

// declared is a branch that the export names.
type declared struct {
	*OwnBranch
	at int // its index in the tree; none: no message was placed on it
}

// declare notes the branches that the export names.
func (a *arrangement) declare() {
	a.declared = make(map[string]*declared, len(a.c.Branches))
	for i := range a.c.Branches {
		if b := &a.c.Branches[i]; a.declared[b.ID] == nil {
			a.declared[b.ID] = &declared{b, none}
		} else {
			a.c.note(protocol.ImportBranchesCut, 1)
		}
	}
}

// link resolves the identifiers of parents.
func (a *arrangement) link() {
	nodes := a.c.Messages
	index := make(map[string]int, len(nodes))
	a.parent, a.children = make([]int, len(nodes)), make([][]int, len(nodes))
	for i := range nodes {
		if _, repeated := index[nodes[i].ID]; !repeated {
			index[nodes[i].ID] = i
		}
	}
	for i := range nodes {
		a.parent[i] = -1
		if index[nodes[i].ID] != i {
			a.c.note(protocol.ImportMessagesSkipped, 1)
			a.parent[i] = -2
			continue
		}
		if parent := nodes[i].Parent; parent != "" {
			at, known := index[parent]
			if !known && !nodes[i].Hidden && !isNoParent(parent) {
				a.c.note(protocol.ImportMessagesUnlinked, 1)
			}
			if known {
				a.parent[i] = at
				a.children[at] = append(a.children[at], i)
			}
		}
	}
}

// isNoParent reports whether Claude or LibreChat uses an identifier for "no parent".
func isNoParent(id string) bool {
	return id == "00000000-0000-4000-8000-000000000000" || id == "00000000-0000-0000-0000-000000000000"
}

// order walks the nodes from the roots. Nodes in a circle are not reached.
func (a *arrangement) order() {
	nodes := a.c.Messages
	a.visible = make([]int, len(nodes))
	for i := range nodes {
		a.visible[i] = -1
		if a.parent[i] == -1 {
			a.walk = append(a.walk, i)
		}
	}
	if a.c.own() { // others list the versions of a message in their order
		bySibling := func(x, y int) int { return cmp.Compare(nodes[x].Sibling, nodes[y].Sibling) }
		slices.SortStableFunc(a.walk, bySibling)
		for _, children := range a.children {
			slices.SortStableFunc(children, bySibling)
		}
	}
	reached := make([]bool, len(nodes))
	for next := 0; next < len(a.walk); next++ {
		i := a.walk[next]
		reached[i] = true
		switch {
		case !nodes[i].Hidden:
			a.visible[i] = i
		case a.parent[i] >= 0:
			a.visible[i] = a.visible[a.parent[i]]
		}
		a.walk = append(a.walk, a.children[i]...)
	}
	for i := range nodes {
		if !reached[i] && a.parent[i] >= 0 && !nodes[i].Hidden {
			a.c.note(protocol.ImportMessagesSkipped, 1)
		}
	}
}

// above returns the visible parent of a visible node; -1: none.
func (a *arrangement) above(i int) int {
	if a.parent[i] < 0 {
		return -1
	}
	if up := a.visible[a.parent[i]]; up >= 0 {
		return a.merged[up]
	}
	return -1
}

// merge joins the nodes of one answer: ChatGPT stores each step of an answer, for example code and its output, as a
// message of its own.
func (a *arrangement) merge() {
	nodes := a.c.Messages
	a.merged = make([]int, len(nodes))
	below := make([]int, len(nodes)) // visible children
	for _, i := range a.walk {
		a.merged[i] = i
		if !nodes[i].Hidden {
			if up := a.parent[i]; up >= 0 && a.visible[up] >= 0 {
				below[a.visible[up]]++
			}
		}
	}
	if a.c.Kind != protocol.ImportFromChatGPT {
		return
	}
	for _, i := range a.walk {
		if nodes[i].Hidden || a.parent[i] < 0 || a.visible[a.parent[i]] < 0 {
			continue
		}
		direct := a.visible[a.parent[i]]
		into := a.merged[direct]
		if nodes[i].Role == protocol.RoleAssistant && nodes[into].Role == protocol.RoleAssistant && below[direct] == 1 && nodes[into].size+nodes[i].size <= maxMessage {
			nodes[into].Parts = joinParts(nodes[into].Parts, nodes[i].Parts)
			a.joinFiles(&nodes[into], nodes[i].Attachments)
			nodes[into].size += nodes[i].size
			nodes[i].Parts = nil
			a.merged[i] = into
		}
	}
}

// joinParts appends parts. The result of a call becomes a part of the call.
func joinParts(parts, more []protocol.Part) []protocol.Part {
	if len(parts) > 0 && len(more) > 0 {
		call, result := &parts[len(parts)-1], &more[0]
		if call.Type == protocol.PartTool && result.Type == protocol.PartTool && call.ToolName == result.ToolName && call.Output == "" && call.Sources == nil {
			call.Output, call.Sources, call.Truncated = result.Output, result.Sources, result.Truncated
			more = more[1:]
		}
	}
	return append(parts, more...)
}

// joinFiles adds files to a message, up to the limit.
func (a *arrangement) joinFiles(m *Message, more []protocol.FileID) {
	for _, id := range more {
		switch {
		case slices.Contains(m.Attachments, id):
		case len(m.Attachments) == protocol.MaxAttachments:
			a.c.note(protocol.ImportAttachmentsAbsent, 1)
		default:
			m.Attachments = append(m.Attachments, id)
		}
	}
}

// activePath marks the nodes of the path that was shown. If the source does not name its end, it is the last node.
func (a *arrangement) activePath() map[int]bool {
	end := -1
	for _, i := range a.walk {
		if a.visible[i] >= 0 && (a.c.Messages[i].ID == a.c.Active || end < 0) {
			end = i
		}
	}
	if end >= 0 && a.c.Messages[end].ID != a.c.Active {
		end = a.walk[len(a.walk)-1]
		for at := len(a.walk) - 1; a.visible[a.walk[at]] < 0; at-- {
			end = a.walk[at-1]
		}
	}
	path := map[int]bool{}
	if end < 0 {
		return path
	}
	for i := a.merged[a.visible[end]]; i >= 0; i = a.above(i) {
		path[i] = true
	}
	return path
}

// place puts the messages on branches, parents before children. A message continues the branch that the export names for
// it, if that ends with its parent. Otherwise it continues the branch of its parent if it is on the active path, or if the
// parent is the head of a branch that no other message continues; or it starts one.
func (a *arrangement) place(active map[int]bool) {
	nodes := a.c.Messages
	a.at = make([]int, len(nodes))
	siblings := map[int]int{}
	for i := range a.at {
		a.at[i] = none
	}
	for _, i := range a.walk {
		if nodes[i].Hidden || a.merged[i] != i {
			continue
		}
		p := Placed{Message: nodes[i], ParentIndex: none, Depth: 1}
		if up := a.above(i); up >= 0 {
			if p.ParentIndex = a.at[up]; p.ParentIndex < 0 { // its branch was left out
				a.c.note(protocol.ImportBranchesCut, 1)
				continue
			}
			p.Depth = a.tree.Messages[p.ParentIndex].Depth + 1
		}
		if p.Branch = a.branchFor(&p, active[i]); p.Branch == none {
			a.c.note(protocol.ImportBranchesCut, 1)
			continue
		}
		p.SiblingIndex = siblings[p.ParentIndex]
		siblings[p.ParentIndex]++
		a.at[i] = len(a.tree.Messages)
		b := &a.tree.Branches[p.Branch]
		b.Head, b.HeadDepth = a.at[i], p.Depth
		a.tree.Messages = append(a.tree.Messages, p)
	}
}

// branchFor returns the branch of a message. It creates one if necessary; none: there are too many.
func (a *arrangement) branchFor(p *Placed, active bool) int {
	if active {
		return a.first
	}
	own := a.declared[p.Message.Branch]
	switch {
	case own == nil: // of no branch that the export names
	case own.at == none:
		own.at = a.branchAfter(p.ParentIndex, own.OwnBranch)
		return own.at
	case a.tree.Branches[own.at].Head == p.ParentIndex && p.ParentIndex != none:
		return own.at
	}
	if p.ParentIndex >= 0 {
		if from := a.tree.Messages[p.ParentIndex].Branch; from != a.first && a.tree.Branches[from].Head == p.ParentIndex {
			return from
		}
	}
	return a.branchAfter(p.ParentIndex, nil)
}

// branchAfter creates a branch that shows the path to a message, and has its own messages after it. none: there are too many.
func (a *arrangement) branchAfter(message int, source *OwnBranch) int {
	b, fits := a.tree.BranchAfter(message, a.segments)
	if !fits {
		return none
	}
	b.Source = source
	a.segments += len(b.Segments)
	a.tree.Branches = append(a.tree.Branches, b)
	return len(a.tree.Branches) - 1
}

// placeEmpty adds the branches that the export names and that have no messages of their own, and finds the active one.
func (a *arrangement) placeEmpty() {
	index := make(map[string]int, len(a.c.Messages))
	for i := range a.c.Messages {
		if _, repeated := index[a.c.Messages[i].ID]; !repeated {
			index[a.c.Messages[i].ID] = a.at[i]
		}
	}
	for i := range a.c.Branches {
		b := a.declared[a.c.Branches[i].ID]
		if b.at != none {
			continue
		}
		base, known := index[b.Base]
		if b.Base != "" && (!known || base == none) {
			a.c.note(protocol.ImportBranchesCut, 1)
			continue
		}
		if b.Base == "" {
			base = none
		}
		if b.at = a.branchAfter(base, b.OwnBranch); b.at == none {
			a.c.note(protocol.ImportBranchesCut, 1)
		}
	}
	switch active := a.declared[a.c.ActiveBranch]; {
	case active != nil && active.at != none:
		a.tree.Active = active.at
	case len(a.tree.Branches) == 0:
		a.tree.Active = a.branchAfter(none, nil)
	default:
		if head, known := index[a.c.Active]; known && head != none {
			a.tree.Active = a.tree.Messages[head].Branch
		}
	}
}
