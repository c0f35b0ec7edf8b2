package tool

import (
	"context"
	"fmt"
	"math"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/providers/code"
)

// Code is what the tool run_code uses.
type Code struct {
	Runner CodeRunner
	Limits DailySeconds
	// SecondsPerDay is the processor time of an account on a UTC day; 0: no limit.
	SecondsPerDay int
	// Unavailable is why code cannot be run, a sentence; empty: it can.
	Unavailable string
}

// CodeRunner executes code. code.Engine implements it.
type CodeRunner interface {
	// Run executes a task for an account. used is the processor time, also of a run that failed. An error that users may see
	// is a *toolbox.Failure.
	Run(ctx context.Context, account protocol.AccountID, task *code.Task, progress func(label string)) (result *code.Result, used time.Duration, err error)
}

// DailySeconds counts the seconds that accounts use on a UTC day. Package persistence/limits implements it.
type DailySeconds interface {
	// AddDaily counts n uses of a name, and reports whether they are within the limit. resets is when the day ends.
	AddDaily(ctx context.Context, name, key string, n, limit int) (allowed bool, resets time.Time, err error)
}

// counterOfCode is the name of the seconds in the daily limits.
const counterOfCode = "code_seconds"

// run executes a task within the limit of the day. A run costs at least the second that it starts with.
func (c *Code) run(ctx context.Context, call *toolbox.Call, task *code.Task) (*code.Result, error) {
	if c.SecondsPerDay > 0 {
		allowed, resets, err := c.Limits.AddDaily(ctx, counterOfCode, call.AccountID.String(), 1, c.SecondsPerDay)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, &toolbox.Failure{Code: "unavailable", Detail: "The limit of the seconds of code cannot be checked at the moment. Try again later."}
		case !allowed:
			return nil, &toolbox.Failure{Code: "daily_limit", Detail: fmt.Sprintf("The account has used its %d seconds of code for today. The limit resets at %s.",
				c.SecondsPerDay, resets.Format(time.RFC3339))}
		}
	}
	result, used, err := c.Runner.Run(ctx, call.AccountID, task, label(call))
	if more := int(math.Ceil(used.Seconds())) - 1; c.SecondsPerDay > 0 && more > 0 {
		// If this is lost, the account has a few seconds more.
		_, _, _ = c.Limits.AddDaily(context.WithoutCancel(ctx), counterOfCode, call.AccountID.String(), more, c.SecondsPerDay)
	}
	return result, err
}
