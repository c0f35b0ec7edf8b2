package journal

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// takenBatch is a batch that the writer took, with the time since the start of the test.
type takenBatch struct {
	turns []protocol.TurnID
	at    time.Duration
}

// runJournal runs a journal in a synctest bubble, which has its own clock. The journal has one writer, which takes
// batches and does not store them. runJournal returns the batches, and the turns whose appends submitAll submitted.
func runJournal(t *testing.T, submitAll func(t *testing.T, j *Journal) []protocol.TurnID) (batches []takenBatch, submitted []protocol.TurnID) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &Journal{busy: map[turnKey]struct{}{}}
		j.wake = sync.NewCond(&j.mu)
		began := time.Now()
		var writer sync.WaitGroup
		writer.Go(func() {
			for batch := j.take(); batch != nil; batch = j.take() {
				one := takenBatch{at: time.Since(began)}
				for _, entry := range batch {
					one.turns = append(one.turns, entry.TurnID)
				}
				batches = append(batches, one)
				j.release(batch)
			}
		})
		synctest.Wait()
		submitted = submitAll(t, j)
		<-time.After(time.Second)
		synctest.Wait()
		j.mu.Lock()
		if len(j.queue) > 0 {
			t.Errorf("%d appends are left", len(j.queue))
		}
		j.closed = true
		j.mu.Unlock()
		j.wake.Broadcast()
		writer.Wait()
	})
	return batches, submitted
}

func submit(j *Journal, patient bool) protocol.TurnID {
	turn := protocol.NewTurnID()
	j.Append(&turnlog.Append{TurnID: turn, Deferrable: patient}, func(error) {})
	return turn
}

func TestPatientAppendsWaitForEachOther(t *testing.T) {
	const between, count = journalWait / 10, 5
	batches, submitted := runJournal(t, func(_ *testing.T, j *Journal) (turns []protocol.TurnID) {
		for range count {
			turns = append(turns, submit(j, true))
			<-time.After(between)
		}
		return turns
	})
	if len(batches) != 1 || batches[0].at != journalWait {
		t.Fatalf("taken: %v", batches)
	}
	for i, turn := range batches[0].turns {
		if turn != submitted[i] {
			t.Error("the order changed")
		}
	}
}

func TestAnAppendThatIsNotPatientIsTakenAtOnceWithAllThatWaits(t *testing.T) {
	batches, submitted := runJournal(t, func(_ *testing.T, j *Journal) []protocol.TurnID {
		first := submit(j, true)
		<-time.After(journalWait / 2)
		return []protocol.TurnID{first, submit(j, false)}
	})
	if len(batches) != 1 || batches[0].at != journalWait/2 || len(batches[0].turns) != 2 ||
		batches[0].turns[0] != submitted[0] || batches[0].turns[1] != submitted[1] {
		t.Errorf("taken: %v, submitted: %v", batches, submitted)
	}
}

func TestAFullBatchIsTakenAtOnce(t *testing.T) {
	batches, _ := runJournal(t, func(_ *testing.T, j *Journal) (turns []protocol.TurnID) {
		for range maxJournalBatch + 1 {
			turns = append(turns, submit(j, true))
		}
		return turns
	})
	if len(batches) != 2 || batches[0].at != 0 || len(batches[0].turns) != maxJournalBatch || batches[1].at > journalWait {
		t.Errorf("%d statements, the first of %d at %s", len(batches), len(batches[0].turns), batches[0].at)
	}
}

// An append stays in the queue while an earlier append of its turn is in flight. It is taken as soon as the earlier one
// is released.
func TestASecondAppendOfATurnIsNotForgotten(t *testing.T) {
	turn := protocol.NewTurnID()
	batches, _ := runJournal(t, func(_ *testing.T, j *Journal) []protocol.TurnID {
		for range 2 {
			j.Append(&turnlog.Append{TurnID: turn, Deferrable: true}, func(error) {})
		}
		return nil
	})
	if len(batches) != 2 || len(batches[0].turns) != 1 || batches[1].at != journalWait {
		t.Errorf("taken: %v", batches)
	}
}
