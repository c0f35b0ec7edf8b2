package main

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/socket"
	"turnstone/cmd/turnstone/telemetry"
)

type serveCommand struct{}

// Run serves until ctx ends or the service fails, then shuts down.
func (serveCommand) Run(ctx context.Context, p *program) (err error) {
	config, warnings, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	if err := config.CheckServe(); err != nil {
		return err
	}
	if config.Service.Environment == "" {
		config.Service.Environment = "production"
	}
	log := telemetry.NewLogger(p.stderr, config.Service.LogLevel, false)
	restore, err := zap.RedirectStdLogAt(log.Named("library"), zap.WarnLevel)
	if err != nil {
		return err
	}
	defer restore()
	for _, warning := range append(warnings, config.Notes()...) {
		log.Warn(warning)
	}
	own, err := folder.Open(config.Service.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	sockets, err := socket.Open(ctx, &config)
	if err != nil {
		return err
	}
	s, err := startService(ctx, &config, own, p.environment, log)
	if err != nil {
		return errors.Join(err, sockets.Close(ctx))
	}
	s.Serve(sockets)
	log.Info("turnstone serves", zap.Stringer("base_url", config.Service.BaseURL), zap.String("build", buildSHA),
		zap.Stringer("node", s.node.ID()))
	return s.WaitAndShutDown(ctx, time.Duration(config.Service.DrainGrace))
}
