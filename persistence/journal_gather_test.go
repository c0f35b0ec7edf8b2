package persistence

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/protocol"
)

// taken is a batch that a writer took, and when.
type taken struct {
	turns []protocol.TurnID
	at    time.Duration
}

// gathering runs a journal whose one writer only takes, in a bubble of its own clock.
func gathering(t *testing.T, hand func(t *testing.T, j *Journal) []protocol.TurnID) (batches []taken, handed []protocol.TurnID) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &Journal{busy: map[turnKey]struct{}{}}
		j.wake = sync.NewCond(&j.mu)
		began := time.Now()
		var writer sync.WaitGroup
		writer.Go(func() {
			for batch := j.take(); batch != nil; batch = j.take() {
				one := taken{at: time.Since(began)}
				for _, entry := range batch {
					one.turns = append(one.turns, entry.TurnID)
				}
				batches = append(batches, one)
				j.release(batch)
			}
		})
		synctest.Wait()
		handed = hand(t, j)
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
	return batches, handed
}

func handIn(j *Journal, patient bool) protocol.TurnID {
	turn := protocol.NewTurnID()
	j.Append(&protocol.TurnAppend{TurnID: turn, Patient: patient}, func(error) {})
	return turn
}

func TestPatientAppendsWaitForEachOther(t *testing.T) {
	const between, count = journalGather / 10, 5
	batches, handed := gathering(t, func(_ *testing.T, j *Journal) (turns []protocol.TurnID) {
		for range count {
			turns = append(turns, handIn(j, true))
			<-time.After(between)
		}
		return turns
	})
	if len(batches) != 1 || batches[0].at != journalGather {
		t.Fatalf("taken: %v", batches)
	}
	for i, turn := range batches[0].turns {
		if turn != handed[i] {
			t.Error("the order changed")
		}
	}
}

func TestAnAppendThatIsNotPatientIsTakenAtOnceWithAllThatWaits(t *testing.T) {
	batches, handed := gathering(t, func(_ *testing.T, j *Journal) []protocol.TurnID {
		first := handIn(j, true)
		<-time.After(journalGather / 2)
		return []protocol.TurnID{first, handIn(j, false)}
	})
	if len(batches) != 1 || batches[0].at != journalGather/2 || len(batches[0].turns) != 2 ||
		batches[0].turns[0] != handed[0] || batches[0].turns[1] != handed[1] {
		t.Errorf("taken: %v, handed in: %v", batches, handed)
	}
}

func TestAFullStatementWaitsForNobody(t *testing.T) {
	batches, _ := gathering(t, func(_ *testing.T, j *Journal) (turns []protocol.TurnID) {
		for range maxJournalBatch + 1 {
			turns = append(turns, handIn(j, true))
		}
		return turns
	})
	if len(batches) != 2 || batches[0].at != 0 || len(batches[0].turns) != maxJournalBatch || batches[1].at > journalGather {
		t.Errorf("%d statements, the first of %d at %s", len(batches), len(batches[0].turns), batches[0].at)
	}
}

// What is left over because its turn's append before is under way is taken as soon as that is answered.
func TestASecondAppendOfATurnIsNotForgotten(t *testing.T) {
	turn := protocol.NewTurnID()
	batches, _ := gathering(t, func(_ *testing.T, j *Journal) []protocol.TurnID {
		for range 2 {
			j.Append(&protocol.TurnAppend{TurnID: turn, Patient: true}, func(error) {})
		}
		return nil
	})
	if len(batches) != 2 || len(batches[0].turns) != 1 || batches[1].at != journalGather {
		t.Errorf("taken: %v", batches)
	}
}
