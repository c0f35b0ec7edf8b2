package main

import (
	"context"
	"os"

	"turnstone/cmd/turnstone/settings"
	"turnstone/providers/child"
	"turnstone/providers/code"
	"turnstone/providers/tool"
)

// codeCommand is the child process that executes the code of a model; see package providers/code. It has no environment, and
// uses neither the network nor the folders of the service.
type codeCommand struct{}

// Run reads a task on stdin, and prints its result.
func (*codeCommand) Run(p *program) error { return code.Child(os.Stdin, p.stdout) }

// openCode creates what the tool for code uses. The limiter and the guard of the spools are open.
func (s *service) openCode(context.Context) error {
	s.code = &tool.Code{Limits: s.limiter, SecondsPerDay: s.config.Limits.CodeSeconds}
	switch {
	case s.config.Service.RunCode == settings.Off:
		s.code.Unavailable = "Code cannot be run, because TURNSTONE_RUN_CODE is off for this service."
		return nil
	case child.Resident("self") == 0:
		s.code.Unavailable = "Code cannot be run, because this server does not show the memory of processes (/proc), so that it cannot be limited."
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	engine := code.New(program, "execute")
	engine.CheckSpace = func() error { return s.spools.Refuse("Code can be run when there is space.") }
	s.code.Runner = engine
	return nil
}
