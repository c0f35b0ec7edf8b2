package projects_test

import (
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

func without[State comparable](states []State, out func(State) bool) []State {
	return slices.DeleteFunc(slices.Clone(states), out)
}

func TestWhatHasNotEndedIsThatOfTheTablesOfStates(t *testing.T) {
	ended := without(protocol.TurnStates, func(s protocol.TurnState) bool { return !s.Terminal() })
	for condition, want := range map[string]string{
		projects.LiveTurns:         strings.Replace(pgtest.InStates(ended), " in ", " not in ", 1),
		projects.OpenTasks:         pgtest.InStates(without(protocol.ResearchStates, protocol.ResearchState.Terminal)),
		projects.OpenUploads:       pgtest.InStates(without(protocol.UploadStates, protocol.UploadState.Terminal)),
		projects.BusyUploads:       pgtest.InStates(without(protocol.UploadStates, func(s protocol.UploadState) bool { return s.Terminal() || s == protocol.UploadPending })),
		conversations.WaitingItems: pgtest.InStates(without(protocol.FollowUpStates, protocol.FollowUpState.Terminal)),
	} {
		if condition != want {
			t.Errorf("the condition is %q, want %q", condition, want)
		}
	}
}
