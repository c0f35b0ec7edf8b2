package code

import (
	"time"

	"turnstone/providers/child"
)

// Limited is New with other limits.
func Limited(budget Budget, most, wait time.Duration, command ...string) *Engine {
	e := New(command...)
	e.budget, e.time, e.wait = budget, most, wait
	return e
}

// Default is the budget of every task.
var Default = budget

// The limits of the engine.
const (
	MaxOutput  = maxOutput
	PerAccount = perAccount
	PerNode    = perNode
)

// The times of the engine.
var (
	MaxTime = maxTime
	MaxWait = maxWait
)

// Program returns what starts the children.
func (e *Engine) Program() *child.Program { return e.program }

// Open returns the number of accounts with tasks that run or wait.
func (e *Engine) Open() int {
	e.queue.mu.Lock()
	defer e.queue.mu.Unlock()
	return len(e.queue.open)
}
