//go:build !failpoint

package main

import (
	"net/http"

	"turnstone/actors/toolbox"
)

// The product has no failpoints. failpoint_on.go describes what a build for tests has instead.

func armFailpoints(map[string]string) error { return nil }

func withFailpoints(internal http.Handler) http.Handler { return internal }

func failpointTools() []toolbox.Tool { return nil }
