package conversations

import (
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/clocktest"
)

// Folding a long log takes time. Reads of other messages, especially those of other accounts, do not wait for it.
func TestReadsDoNotWaitForAMessageThatIsBeingFolded(t *testing.T) {
	var s streamingMessages
	account, turn := protocol.NewAccountID(), protocol.NewTurnID()
	m := &streamingMessage{account: account, turn: turn, covers: 7}
	s.store(m)
	m.mu.Lock() // as during a fold
	defer m.mu.Unlock()
	known := make(chan *knownMessages)
	go func() { known <- s.known(account) }()
	select {
	case k := <-known:
		if len(k.covers) != 1 || k.covers[0] != 7 || k.find(turn) != m {
			t.Errorf("known: %+v", k)
		}
	case <-time.After(clocktest.HangGuard): // it never returns
		t.Error("a read waits for the message")
	}
}
