package main

import (
	"fmt"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/connect"
	"turnstone/cmd/turnstone/settings"
)

type configCommand struct {
	Check configCheckCommand `cmd:"" help:"Check whether serve could start with this environment."`
	Print configPrintCommand `cmd:"" help:"Print the effective configuration; secrets are masked."`
	Doc   configDocCommand   `cmd:"" help:"Print the reference page (Markdown)."`
}

type (
	configCheckCommand struct{}
	configPrintCommand struct{}
	configDocCommand   struct{}
)

// Run prints warnings and notes too. It fails only if serve would refuse the configuration.
func (configCheckCommand) Run(p *program) error {
	config, warnings, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	for _, warning := range append(warnings, config.Notes()...) {
		fmt.Fprintln(p.stdout, "note: "+warning)
	}
	if err := config.CheckServe(); err != nil {
		return err
	}
	if _, err := connect.ClusterTLS(&config, zap.NewNop()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "ok")
	return err
}

// Run also prints a configuration that serve would refuse.
func (configPrintCommand) Run(p *program) error {
	config, _, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	return settings.Print(p.stdout, &config)
}

// Run prints the content of docs/configuration.md.
func (configDocCommand) Run(p *program) error { return settings.Document(p.stdout) }
