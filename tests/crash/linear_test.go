package crash

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"turnstone/protocol"
)

// linearTime bounds the search for one order. A history that is not decided by then fails the run.
const linearTime = 30 * time.Second

// never is the return time of an operation whose outcome is unknown. It may take effect after everything else, which is
// equivalent to never.
const never = math.MaxInt64

// verdict counts the histories of a round.
type verdict struct{ operations, histories, undecided int }

// checkHistories uses porcupine to search, for each draft, title, turn and key, for an order of its operations that
// explains every response and the content of the database at the end.
func (c *checker) checkHistories() {
	for _, one := range c.histories() {
		switch porcupine.CheckOperationsTimeout(one.model, one.operations, linearTime) {
		case porcupine.Illegal:
			c.fail(illegalHistory, "%s: %s", one.name, describe(one))
		case porcupine.Unknown:
			c.notes.linear(verdict{undecided: 1})
			c.fail(undecided, "%s: %s", one.name, describe(one))
		}
		c.notes.linear(verdict{operations: len(one.operations), histories: 1})
	}
}

// objectHistory contains the operations on one object.
type objectHistory struct {
	name       string
	model      porcupine.Model
	operations []porcupine.Operation
	open       map[string]bool // operations without a response, by their key
}

// first reports whether an operation without a response is the first one with its key. It and its repeats have one
// effect together, so the first one, which has no end, represents all of them.
func (h *objectHistory) first(key string) bool {
	if h.open[key] {
		return false
	}
	if h.open == nil {
		h.open = map[string]bool{}
	}
	h.open[key] = true
	return true
}

func describe(h objectHistory) string {
	var lines []string
	operations := slices.Clone(h.operations)
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range operations {
		lines = append(lines, h.model.DescribeOperation(o.Input, o.Output)+" ["+time.Duration(o.Call).String()+" "+time.Duration(o.Return).String()+"]")
	}
	return strings.Join(lines, "; ")
}

func (c *checker) histories() (all []objectHistory) {
	end := time.Duration(0)
	for _, o := range c.Operations {
		end = max(end, o.Began, o.Ended)
	}
	end++
	byName := map[string]*objectHistory{}
	of := func(name string, model porcupine.Model) *objectHistory {
		if byName[name] == nil {
			byName[name] = &objectHistory{name: name, model: model}
		}
		return byName[name]
	}
	for _, o := range c.Operations {
		switch o.Kind {
		case opLook:
			of("draft of "+o.Conversation, registerModel).add(&o, registerInput{}, registerOutput{value: o.Draft, version: o.DraftVersion})
			of("title of "+o.Conversation, registerModel).add(&o, registerInput{}, registerOutput{value: o.Title, version: o.TitleVersion})
		case opDraft:
			of("draft of "+o.Conversation, registerModel).addWrite(&o, o.Draft, o.DraftVersion)
		case opTitle:
			of("title of "+o.Conversation, registerModel).addWrite(&o, o.Title, o.TitleVersion)
		case opSteer, opCancel:
			of("commands to "+o.Turn, commandModel).addCommand(&o)
		case opStart, opEnqueue, opCreate:
			of(o.Kind+" "+o.Text, keyModel).addKeyed(&o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		one := byName[name]
		c.addEnd(one, int64(end))
		one.orderAlike()
		one.dropWithoutEffect()
		all = append(all, *one)
	}
	return all
}

// addEnd adds the content of the database as a last read.
func (c *checker) addEnd(h *objectHistory, at int64) {
	last := porcupine.Operation{Call: at, Return: at + 1}
	kind, name, _ := strings.Cut(h.name, " ")
	switch kind {
	case opDraft, opTitle:
		conversation := c.Stored.Conversations[strings.TrimPrefix(name, "of ")]
		output := registerOutput{value: conversation.Draft, version: conversation.DraftVersion}
		if kind == opTitle {
			output = registerOutput{value: conversation.Title, version: conversation.Version}
		}
		last.Input, last.Output = registerInput{last: true}, output
	case "commands":
		output := commandOutput{}
		if turn := c.logs[strings.TrimPrefix(name, "to ")]; turn != nil {
			output.accepted = strings.Join(slices.Sorted(maps.Keys(turn.Inputs)), " ")
			output.cancelled = turn.Cancelled
		}
		last.Input, last.Output = commandInput{read: true}, output
	case opStart, opEnqueue:
		output := keyOutput{}
		for _, turn := range c.text[name] {
			if turn.FollowUp == "" {
				output.id = turn.ID
			}
		}
		for _, item := range c.followUpsWith(name) {
			output.id = item.ID
		}
		last.Input, last.Output = keyInput{read: true}, output
	case opCreate:
		output := keyOutput{}
		for id, conversation := range c.Stored.Conversations {
			if conversation.Title == name {
				output.id = id
			}
		}
		last.Input, last.Output = keyInput{read: true}, output
	}
	h.operations = append(h.operations, last)
}

func sprint(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) }

func (h *objectHistory) add(o *operation, input, output any) {
	ended := int64(o.Ended)
	if o.open() {
		ended = never
	}
	h.operations = append(h.operations, porcupine.Operation{Input: input, Output: output, Call: int64(o.Began), Return: ended})
}

// A register is a draft or a title with its version.
type (
	registerInput struct {
		write   bool
		last    bool // the read at the end
		text    string
		ifMatch int64 // -1: none
		// alike is the position, from 1, among the writes without a response that no one can tell apart: their texts were
		// never read, and they have the same ifMatch. 0: another operation.
		alike int
	}
	registerOutput struct {
		open, stale bool
		value       string
		version     int64
	}
	registerState struct {
		known   bool
		over    bool // the last read was done
		value   string
		version int64
		alike   int // how many of the unconditional writes that are alike had an effect
	}
)

// orderAlike numbers the writes that are alike by the start of their requests. In any legal order, each of them can be
// replaced by the next one that started before it, so the search need not try the others: n of them have n orders, not
// n factorial. Without this, a history with twenty unknown writes is not decided.
func (h *objectHistory) orderAlike() {
	read := map[string]bool{}
	for _, o := range h.operations {
		if out, is := o.Output.(registerOutput); is && !out.open {
			read[out.value] = true
		}
	}
	slices.SortStableFunc(h.operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	next := map[int64]int{} // by ifMatch
	for i, o := range h.operations {
		in, isRegister := o.Input.(registerInput)
		if isRegister && in.write && o.Output.(registerOutput).open && !read[in.text] {
			next[in.ifMatch]++
			in.alike = next[in.ifMatch]
			h.operations[i].Input = in
		}
	}
}

// dropWithoutEffect removes the commands without a response that the turn does not have at the end. An accepted input stays in
// its log, and a cancelled turn stays cancelled, so these commands had no effect before the last read. After it, they are
// legal in any order. Without this, a history with a dozen of them is not decided.
func (h *objectHistory) dropWithoutEffect() {
	last, is := h.operations[len(h.operations)-1].Output.(commandOutput)
	if !is {
		return
	}
	accepted := strings.Fields(last.accepted)
	h.operations = slices.DeleteFunc(h.operations, func(o porcupine.Operation) bool {
		in := o.Input.(commandInput)
		if !o.Output.(commandOutput).open {
			return false
		}
		return in.cancel && !last.cancelled || !in.cancel && !slices.Contains(accepted, in.id)
	})
}

// addWrite adds a write. It leaves out writes that were refused for a reason other than their version: such a response
// says that nothing happened, so the history must be legal without it.
func (h *objectHistory) addWrite(o *operation, value string, version int64) {
	stale := o.Code == string(protocol.CodeStaleVersion)
	if !o.acknowledged() && !stale && !o.open() {
		return
	}
	input := registerInput{write: true, text: o.Text, ifMatch: -1}
	if o.IfMatch != nil {
		input.ifMatch = *o.IfMatch
	}
	h.add(o, input, registerOutput{open: o.open(), stale: stale, value: value, version: version})
}

var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(registerState), input.(registerInput), output.(registerOutput)
		matches := in.ifMatch == -1 || in.ifMatch == s.version
		after := registerState{known: true, value: in.text, version: s.version + 1, alike: s.alike}
		switch {
		case !in.write && !s.known:
			return true, registerState{known: true, over: in.last, value: out.value, version: out.version, alike: s.alike}
		case !in.write:
			legal := out.value == s.value && out.version == s.version
			s.over = s.over || in.last
			return legal, s
		case out.open && s.over: // nobody saw its effect
			return true, s
		case out.open && in.alike > 0 && in.ifMatch == -1:
			after.alike++
			return in.alike == after.alike, after
		case out.open: // one without an effect is as good after the last read
			return matches && in.alike <= 1, after
		case out.stale:
			return !matches && out.version == s.version && out.value == s.value, s
		}
		return matches && out.version == after.version && out.value == in.text, after
	},
	DescribeOperation: func(input, output any) string { return sprint(input, output) },
}

// The commands to a turn. The state contains the accepted inputs, whether the window for input is closed, and how the
// turn ended.
type (
	commandInput struct {
		read, cancel bool
		id           string
	}
	commandOutput struct {
		open, refused, replayed bool
		accepted                string
		cancelled               bool
	}
	commandState struct {
		accepted                 string
		closed, cancelled, ended bool
	}
)

func (h *objectHistory) addCommand(o *operation) {
	closed := o.Code == string(protocol.CodeSteeringClosed)
	// A 503 means that nothing was done, unless it reports an unknown outcome.
	unknown := o.open()
	if !o.acknowledged() && !closed && !unknown {
		return
	}
	if unknown && !h.first(o.Kind+o.Key) {
		return
	}
	one := porcupine.Operation{
		Input:  commandInput{cancel: o.Kind == opCancel, id: o.Key},
		Output: commandOutput{open: unknown, refused: closed, replayed: o.Replayed}, Call: int64(o.Began), Return: int64(o.Ended),
	}
	if unknown {
		one.Return = never
	}
	h.operations = append(h.operations, one)
}

func (s commandState) has(id string) bool { return slices.Contains(strings.Fields(s.accepted), id) }

func (s commandState) with(id string) commandState {
	ids := append(strings.Fields(s.accepted), id)
	slices.Sort(ids)
	s.accepted = strings.Join(ids, " ")
	return s
}

var commandModel = porcupine.Model{
	Init: func() any { return commandState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(commandState), input.(commandInput), output.(commandOutput)
		switch {
		case in.read:
			return out.accepted == s.accepted && out.cancelled == s.cancelled, s
		case in.cancel:
			return stepCancel(s, out)
		case out.open && (s.closed || s.has(in.id)):
			return true, s
		case out.open:
			return true, s.with(in.id)
		case out.refused:
			legal := !s.has(in.id)
			s.closed = true
			return legal, s
		case out.replayed:
			return s.has(in.id), s
		}
		return !s.closed && !s.has(in.id), s.with(in.id)
	},
	DescribeOperation: func(input, output any) string { return sprint(input, output) },
}

func stepCancel(s commandState, out commandOutput) (bool, any) {
	switch {
	case out.open && (s.ended || s.cancelled):
		return true, s
	case out.refused:
		legal := !s.cancelled // a repeated cancel gets the receipt of the first one
		s.closed, s.ended = true, true
		return legal, s
	case out.replayed:
		return s.cancelled, s
	}
	legal := !s.ended
	s.closed, s.cancelled = true, true
	return legal, s
}

// A key has one effect.
type (
	keyInput  struct{ read bool }
	keyOutput struct {
		open, refused, replayed bool
		id                      string
	}
	keyState struct{ taken, id string }
)

func (h *objectHistory) addKeyed(o *operation) {
	refused := o.Code == string(protocol.CodeTurnInProgress)
	if !o.acknowledged() && !refused && !o.open() || o.open() && !h.first(o.Key) {
		return
	}
	h.add(o, keyInput{}, keyOutput{
		open: o.open(), refused: refused, replayed: o.Replayed, id: o.ID,
	})
}

var keyModel = porcupine.Model{
	Init: func() any { return keyState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(keyState), input.(keyInput), output.(keyOutput)
		switch {
		case in.read:
			return out.id == s.id || s.taken == "unknown" && out.id != "", s
		case out.refused:
			return s.taken == "", s
		case out.open && s.taken == "":
			return true, keyState{taken: "unknown"}
		case out.open:
			return true, s
		case !out.replayed:
			return s.taken == "", keyState{"yes", out.id}
		case s.taken == "unknown":
			return true, keyState{"yes", out.id}
		}
		return s.taken == "yes" && s.id == out.id, s
	},
	DescribeOperation: func(input, output any) string { return sprint(input, output) },
}
