package main

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// stopTimeout bounds what follows the drain of a stop.
const stopTimeout = 30 * time.Second

type serveCommand struct{}

// Run serves until ctx ends, then drains.
func (serveCommand) Run(ctx context.Context, p *program) (err error) {
	config, warnings, err := loadConfig(p.environment)
	if err != nil {
		return err
	}
	if err := config.checkServe(); err != nil {
		return err
	}
	if config.Service.Environment == "" {
		config.Service.Environment = "production"
	}
	log := newLogger(p.stderr, config.Service.LogLevel, false)
	for _, warning := range append(warnings, config.notes()...) {
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
	s, err := startService(ctx, &config, folder, log)
	if err != nil {
		return errors.Join(err, sockets.close(ctx))
	}
	s.serve(sockets)
	log.Info("turnstone serves", zap.Stringer("base_url", config.Service.BaseURL), zap.String("build", buildSHA),
		zap.Stringer("node", s.node.ID()))
	return s.untilDone(ctx, time.Duration(config.Service.DrainGrace))
}
