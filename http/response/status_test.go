package response

import (
	"testing"

	"turnstone/protocol"
)

func TestEveryCodeHasAStatus(t *testing.T) {
	for code, status := range Statuses {
		p := ProblemOf(protocol.Errorf(code, "detail"))
		if p.Status != status || p.Code != code {
			t.Errorf("%s becomes %d %s", code, p.Status, p.Code)
		}
		if (status == 409) != (p.Current != nil) {
			t.Errorf("%s: current is %s", code, p.Current)
		}
	}
}
