package main

import (
	"fmt"
	"runtime"
)

// buildSHA is the commit from which the binary was built. The linker sets it; it is empty if the build did not set it.
var buildSHA string

type versionCommand struct{}

// Run prints the version as one line.
func (versionCommand) Run(p *program) error {
	build := buildSHA
	if build == "" {
		build = "unknown build"
	}
	_, err := fmt.Fprintf(p.stdout, "turnstone %s %s %s/%s\n", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
