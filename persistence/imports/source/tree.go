package source

import "turnstone/protocol"

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
	Active   int // the branch that is shown; the first one
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
	Name       string
	Segments   []Segment
}

// Segment is a range of depths that a branch shows; 0 stands for an open end.
type Segment struct{ Source, From, To int }

// Arrange places the messages of a conversation on branches. The path that was shown becomes the first branch; a message
// at which another path leaves it starts a branch. It adds to the notes what it leaves out.
func (c *Conversation) Arrange() *Tree {
	a := &arrangement{c: c, tree: &Tree{}}
	a.link()
	a.order()
	a.merge()
	a.place(a.activePath())
	return a.tree
}

type arrangement struct {
	c        *Conversation
	tree     *Tree
	parent   []int   // of each node; -1: none
	children [][]int // of each node
	visible  []int   // for each node: itself or its nearest visible ancestor; -1: none
	merged   []int   // for each visible node: the node whose message has its parts
	walk     []int   // nodes, parents before children
	at       []int   // for each node: its index in the tree; -1: not placed
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

// isNoParent reports whether Claude uses an identifier for "no parent".
func isNoParent(id string) bool { return id == "00000000-0000-4000-8000-000000000000" }

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
			nodes[into].Parts = append(nodes[into].Parts, nodes[i].Parts...)
			nodes[into].size += nodes[i].size
			nodes[i].Parts = nil
			a.merged[i] = into
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

// place puts the messages on branches, parents before children. A message continues the branch of its parent if it is on
// the active path, or if the parent is the head of a branch that no other message continues; otherwise it starts one.
func (a *arrangement) place(active map[int]bool) {
	nodes := a.c.Messages
	a.at = make([]int, len(nodes))
	siblings := map[int]int{}
	segments := 0
	a.tree.Branches = []Branch{{Base: -1, Head: -1, Segments: []Segment{{Source: 0, From: 1}}}}
	for _, i := range a.walk {
		a.at[i] = -1
		if nodes[i].Hidden || a.merged[i] != i {
			continue
		}
		p := Placed{Message: nodes[i], ParentIndex: -1, Depth: 1}
		if up := a.above(i); up >= 0 {
			if p.ParentIndex = a.at[up]; p.ParentIndex < 0 { // its branch was left out
				a.c.note(protocol.ImportBranchesCut, 1)
				continue
			}
			p.Depth = a.tree.Messages[p.ParentIndex].Depth + 1
		}
		var is bool
		if p.Branch, is = a.branchFor(&p, active[i], &segments); !is {
			a.c.note(protocol.ImportBranchesCut, 1)
			continue
		}
		p.SiblingIndex = siblings[p.ParentIndex]
		siblings[p.ParentIndex]++
		a.at[i] = len(a.tree.Messages)
		b := &a.tree.Branches[p.Branch]
		b.Head, b.HeadDepth = a.at[i], p.Depth
		b.Name = a.c.BranchNames[nodes[i].ID]
		a.tree.Messages = append(a.tree.Messages, p)
	}
}

// branchFor returns the branch of a message. It creates one if necessary; false: there are too many.
func (a *arrangement) branchFor(p *Placed, active bool, segments *int) (int, bool) {
	const first = 0
	if active {
		return first, true
	}
	base := Branch{Base: p.ParentIndex, Head: -1}
	if p.ParentIndex >= 0 {
		from := a.tree.Messages[p.ParentIndex].Branch
		source := &a.tree.Branches[from]
		if from != first && source.Head == p.ParentIndex {
			return from, true
		}
		for _, s := range source.Segments {
			if s.From >= p.Depth {
				break
			}
			if s.To == 0 || s.To >= p.Depth {
				s.To = p.Depth - 1
			}
			base.Segments = append(base.Segments, s)
		}
	}
	if len(base.Segments) >= maxNesting || *segments > maxSegments {
		return 0, false
	}
	branch := len(a.tree.Branches)
	base.Segments = append(base.Segments, Segment{Source: branch, From: p.Depth})
	*segments += len(base.Segments)
	a.tree.Branches = append(a.tree.Branches, base)
	return branch, true
}
