package conversations

import (
	"container/list"
	"fmt"
	"sync"

	"turnstone/protocol"
)

// Limits of streamingMessages, for all accounts together.
const (
	maxStreamingMessages = 1024
	maxStreamingBytes    = 32 << 20
)

// streamingMessages caches the messages of live turns as they were last read, so that the next read needs only the
// events that were appended since. It holds committed events only, so it returns the same as the log; a message that is
// not in the cache is folded from the whole log. Its methods may be called from any goroutine. mu is never held while a
// message is folded, which may take long.
type streamingMessages struct {
	mu     sync.Mutex
	byTurn map[protocol.AccountID]map[protocol.TurnID]*streamingMessage // guarded by mu
	recent list.List                                                    // guarded by mu; *streamingMessage, the most recently used first
	bytes  int                                                          // guarded by mu
}

// streamingMessage is the fold of a log up to the sequence covers.
type streamingMessage struct {
	account      protocol.AccountID
	turn         protocol.TurnID
	element      *list.Element // guarded by streamingMessages.mu; nil: not in the cache
	size         int           // guarded by streamingMessages.mu
	cachedCovers int64         // guarded by streamingMessages.mu: covers when the message was last stored in the cache

	mu     sync.Mutex
	fold   protocol.Fold // guarded by mu
	covers int64         // guarded by mu
	bytes  int           // guarded by mu; of the frames that were read
}

// known returns the cached messages of an account and the sequence that each one covers.
func (s *streamingMessages) known(account protocol.AccountID) *knownMessages {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &knownMessages{account: account, turns: []protocol.TurnID{}, covers: []int64{}}
	for turn, message := range s.byTurn[account] {
		k.turns, k.covers = append(k.turns, turn), append(k.covers, message.cachedCovers)
		k.messages = append(k.messages, message)
	}
	return k
}

// knownMessages holds the messages that one read starts from. They stay valid even if the cache drops them in the
// meantime.
type knownMessages struct {
	account  protocol.AccountID
	turns    []protocol.TurnID
	covers   []int64
	messages []*streamingMessage
}

// find returns the message of a turn, or a new one if it is not known.
func (k *knownMessages) find(turn protocol.TurnID) *streamingMessage {
	for i, known := range k.turns {
		if known == turn {
			return k.messages[i]
		}
	}
	return &streamingMessage{account: k.account, turn: turn}
}

// extend folds frames, which start at or before the event after covers. Another reader may have folded some of them.
func (m *streamingMessage) extend(frames []byte) (parts []protocol.Part, covers int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += len(frames)
	if m.covers, err = m.fold.FoldFrames(m.covers, frames); err != nil {
		return nil, 0, fmt.Errorf("folding a streaming message: %w", err)
	}
	return m.fold.Parts(), m.covers, nil
}

// store stores a message in the cache, or updates its use and its size, and drops the least recently used messages
// beyond the limits.
func (s *streamingMessages) store(m *streamingMessage) {
	m.mu.Lock()
	size, covers := m.bytes, m.covers
	m.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.element == nil {
		if s.byTurn == nil {
			s.byTurn = map[protocol.AccountID]map[protocol.TurnID]*streamingMessage{}
		}
		if old := s.byTurn[m.account][m.turn]; old != nil {
			s.drop(old)
		}
		if s.byTurn[m.account] == nil {
			s.byTurn[m.account] = map[protocol.TurnID]*streamingMessage{}
		}
		s.byTurn[m.account][m.turn] = m
		m.element = s.recent.PushFront(m)
	} else {
		s.recent.MoveToFront(m.element)
	}
	s.bytes += size - m.size
	m.size, m.cachedCovers = size, covers
	for s.recent.Len() > maxStreamingMessages || s.bytes > maxStreamingBytes {
		s.drop(s.recent.Back().Value.(*streamingMessage)) // nothing else is in the list
	}
}

// forget drops the message of a turn that has ended.
func (s *streamingMessages) forget(account protocol.AccountID, turn protocol.TurnID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byTurn[account][turn]; m != nil {
		s.drop(m)
	}
}

// drop removes a message. The caller holds mu.
func (s *streamingMessages) drop(m *streamingMessage) {
	s.recent.Remove(m.element)
	s.bytes -= m.size
	m.element, m.size = nil, 0
	delete(s.byTurn[m.account], m.turn)
	if len(s.byTurn[m.account]) == 0 {
		delete(s.byTurn, m.account)
	}
}
