package main

import (
	"fmt"
	"io"
	"runtime"
)

// buildSHA is the commit from which the binary was built. The linker sets it; it is empty if the build did not set it.
var buildSHA string

type versionCommand struct{}

// Run prints the version as one line.
func (versionCommand) Run(p *program) error {
	_, err := io.WriteString(p.stdout, versionLine())
	return err
}

func versionLine() string {
	build := buildSHA
	if build == "" {
		build = "unknown build"
	}
	return fmt.Sprintf("turnstone %s %s %s/%s\n", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
