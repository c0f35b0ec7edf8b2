package machine

import (
	"turnstone/protocol"
)

// end makes the last transition, with the last event.
func (b *Batch) end(trigger protocol.ResearchTrigger, failure *protocol.ResearchFailure) {
	b.returnInputs()
	b.leaveUnread()
	for _, q := range b.questions {
		if !q.State.Terminal() {
			b.changeQuestion(q, protocol.ResearchStepSkips)
		}
	}
	b.noteProgress()
	b.task.Failure = failure
	b.move(trigger)
	b.emit(&protocol.ResearchFinished{
		State: b.task.State, Failure: failure, ArtifactID: b.task.ArtifactID, MessageID: b.task.MessageID, LastSequence: b.sequence + 1,
	})
}

func (b *Batch) giveUp() {
	switch b.task.State {
	case protocol.ResearchCancelling:
		b.end(protocol.ResearchStopped, nil)
	case protocol.ResearchQueued, protocol.ResearchRunning:
		b.end(protocol.ResearchFails, &protocol.ResearchFailure{
			Code: protocol.ResearchInterrupted, Detail: "The service was interrupted too often while it worked on this task. Start it again.",
		})
	}
}
