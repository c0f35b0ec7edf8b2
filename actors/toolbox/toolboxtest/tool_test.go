package toolboxtest_test

import (
	"context"
	"testing"

	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
)

func TestTheToolForTestsPassesTheSuite(t *testing.T) {
	toolboxtest.Suite(t, toolboxtest.Case{Tool: &toolboxtest.Tool{Is: toolbox.Spec{Name: "look"}}})
	waits := func(ctx context.Context, _ *toolbox.Call) (toolbox.Result, error) {
		<-ctx.Done()
		return toolbox.Result{}, ctx.Err()
	}
	toolboxtest.Suite(t, toolboxtest.Case{Tool: &toolboxtest.Tool{Is: toolbox.Spec{Name: "wait"}, Play: waits}, Waits: `{"n":1}`})
}
