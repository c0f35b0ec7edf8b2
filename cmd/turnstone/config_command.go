package main

import (
	"fmt"
)

type configCommand struct {
	Check configCheckCommand `cmd:"" help:"Say whether serve could start with this environment."`
	Print configPrintCommand `cmd:"" help:"Print what holds; secrets are masked."`
	Doc   configDocCommand   `cmd:"" help:"Print the reference page (Markdown)."`
}

type (
	configCheckCommand struct{}
	configPrintCommand struct{}
	configDocCommand   struct{}
)

// Run reports warnings and notes too; only what would stop serve is a failure.
func (configCheckCommand) Run(p *program) error {
	config, warnings, err := loadConfig(p.environment)
	if err != nil {
		return err
	}
	for _, warning := range append(warnings, config.notes()...) {
		fmt.Fprintln(p.stdout, "note: "+warning)
	}
	if err := config.checkServe(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "ok")
	return err
}

// Run prints also a configuration that serve would refuse.
func (configPrintCommand) Run(p *program) error {
	config, _, err := loadConfig(p.environment)
	if err != nil {
		return err
	}
	return printConfig(p.stdout, &config)
}

// Run writes docs/configuration.md.
func (configDocCommand) Run(p *program) error { return documentConfig(p.stdout) }
