package main

import (
	"fmt"
	"runtime"
)

// buildSHA is the commit that the binary was built from, put here by the linker; empty when nobody said.
var buildSHA string

type versionCommand struct{}

// Run prints one line.
func (versionCommand) Run(p *program) error {
	build := buildSHA
	if build == "" {
		build = "unknown build"
	}
	_, err := fmt.Fprintf(p.stdout, "turnstone %s %s %s/%s\n", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
