package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

// noStack is above every level, so no entry has a stack trace: the position in the job queue's code does not help
// an operator.
const noStack = slog.LevelError + 100

// jobLogger returns the logger of the job queue. It writes one line per entry, and drops the errors that the queue logs
// while it is being stopped: that its statements were cancelled.
func jobLogger(log *zap.Logger) *slog.Logger {
	return slog.New(jobLog{zapslog.NewHandler(log.Core(), zapslog.WithName("jobs"), zapslog.AddStacktraceAt(noStack))})
}

type jobLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (l jobLog) Handle(ctx context.Context, record slog.Record) error {
	cancelled := false
	record.Attrs(func(attr slog.Attr) bool {
		err, isError := attr.Value.Any().(error)
		cancelled = isError && errors.Is(err, context.Canceled) || strings.Contains(attr.Value.String(), context.Canceled.Error())
		return !cancelled
	})
	if cancelled {
		return nil
	}
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l jobLog) WithAttrs(attrs []slog.Attr) slog.Handler { return jobLog{l.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (l jobLog) WithGroup(name string) slog.Handler { return jobLog{l.Handler.WithGroup(name)} }
