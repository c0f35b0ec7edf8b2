package main

import (
	"context"
	"errors"
	"time"

	"turnstone/cmd/turnstone/settings"

	"go.uber.org/zap"
)

// stopTimeout bounds the shutdown that follows the drain.
const stopTimeout = 30 * time.Second

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
	log := newLogger(p.stderr, config.Service.LogLevel, false)
	for _, warning := range append(warnings, config.Notes()...) {
		log.Warn(warning)
	}
	folder, err := openFolder(config.Service.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.close()) }()
	sockets, err := openListeners(ctx, &config)
	if err != nil {
		return err
	}
	s, err := startService(ctx, &config, folder, p.environment, log)
	if err != nil {
		return errors.Join(err, sockets.close(ctx))
	}
	s.serve(sockets)
	log.Info("turnstone serves", zap.Stringer("base_url", config.Service.BaseURL), zap.String("build", buildSHA),
		zap.Stringer("node", s.node.ID()))
	return s.waitAndShutDown(ctx, time.Duration(config.Service.DrainGrace))
}
