package open_test

import (
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/open"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func without[State comparable](states []State, out func(State) bool) []State {
	return slices.DeleteFunc(slices.Clone(states), out)
}

func TestWhatHasNotEndedIsThatOfTheTablesOfStates(t *testing.T) {
	ended := without(protocol.TurnStates, func(s protocol.TurnState) bool { return !s.Terminal() })
	for condition, want := range map[string]string{
		open.Turns:        strings.Replace(pgtest.InStates(ended), " in ", " not in ", 1),
		open.Tasks:        pgtest.InStates(without(protocol.ResearchStates, protocol.ResearchState.Terminal)),
		open.BusyTasks:    pgtest.InStates(without(protocol.ResearchStates, func(s protocol.ResearchState) bool { return s.Terminal() || s == protocol.ResearchQueued })),
		open.Imports:      pgtest.InStates(without(protocol.ImportStates, protocol.ImportState.Terminal)),
		open.EndedImports: pgtest.InStates(without(protocol.ImportStates, func(s protocol.ImportState) bool { return !s.Terminal() })),
		open.Uploads:      pgtest.InStates(without(protocol.UploadStates, protocol.UploadState.Terminal)),
		open.BusyUploads:  pgtest.InStates(without(protocol.UploadStates, func(s protocol.UploadState) bool { return s.Terminal() || s == protocol.UploadPending })),
		open.FollowUps:    pgtest.InStates(without(protocol.FollowUpStates, protocol.FollowUpState.Terminal)),
	} {
		if condition != want {
			t.Errorf("the condition is %q, want %q", condition, want)
		}
	}
}
