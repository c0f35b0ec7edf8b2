package failpoints

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// cancelTaskScenario is the scenario in which the cancel of a research task meets the fault, while a model plans. The task ends
// cancelled, and it has asked the model once.
type cancelTaskScenario struct{ status int }

const taskStateSQL = `select state from research_tasks where task_id = $1`

func (want cancelTaskScenario) play(t *testing.T, s *installation, c cell) {
	question := "What is an endless task " + newKey() + "?"
	task := s.user.Research(t, sitetest.ResearchBody{"question": question, "depth": "quick"})
	id, path := task.TaskID.String(), "/research-tasks/"+task.TaskID.String()
	ended := make(chan error, 1)
	ctx := sitetest.Within(t, sitetest.HangGuard)
	go func() { ended <- s.user.FollowResearch(ctx, id, nil) }()
	sitetest.Eventually(t, "the model plans", func() bool { return s.planned(question) == 1 })
	s.user.HTTP.CloseIdleConnections()
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPost, path+"/cancel", nil)
	if c.ends() {
		s.awaitExit(c)
		if left := queryOne[string](s, taskStateSQL, uuid.UUID(task.TaskID).String()); left != string(protocol.ResearchCancelling) && left != string(protocol.ResearchCancelled) {
			t.Errorf("the program left the task %s", left)
		}
		s.restart()
	} else {
		s.awaitFailpoint(c)
	}
	s.wantStatus(want.status, response, nil, err)
	sitetest.AwaitEnd(t, ended)
	s.user.CheckResearch(t, id, true)
	s.user.Do(t, http.MethodPost, path+"/cancel", nil).WantProblem(t, http.StatusConflict, protocol.CodeConflict)
	if n := s.planned(question); n != 1 {
		t.Errorf("the model was asked for a plan %d times", n)
	}
}

// planned returns how often the model was asked for the plan of a task.
func (s *installation) planned(question string) int {
	return s.modelCalls("Question of the user:\n" + question + "\n")
}
