package dev

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/turn"
	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/operate"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/socket"
	"turnstone/persistence"
)

// Program is what the command receives.
type Program struct {
	*operate.Program
	// StartService starts the service of this process.
	StartService func(ctx context.Context, config *settings.Config, in *folder.Folder, log *zap.Logger) (Service, error)
}

// Service is a running service, as far as the command uses it.
type Service interface {
	// Serve starts to accept clients.
	Serve(sockets socket.Set)
	// WaitAndShutDown waits until ctx ends, or a part of the service fails, and then stops all parts.
	WaitAndShutDown(ctx context.Context, grace time.Duration) error
	// RetryWhileBusy repeats a step of the start while the database is busy.
	RetryWhileBusy(ctx context.Context, message string, step func(context.Context) error) error
	Stores() *persistence.Stores
	Turns() *turn.Host
	ModelFamily() string
}

// grace returns the drain grace of dev.
func (p *Program) grace(config *settings.Config) time.Duration {
	if p.Environment["TURNSTONE_DRAIN_GRACE"] != "" {
		return time.Duration(config.Service.DrainGrace)
	}
	return shortGrace
}
