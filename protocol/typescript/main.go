// Command typescript generates TypeScript for the web app: the types of a turn's events, from the registry in protocol, and the limits
// of the service that the app applies too. `make generate` runs it; tests check that the committed files match.
//
// It does not generate the types of requests and responses: those come from protocol/openapi.json.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: typescript <the OpenAPI document> <folder to write to>")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "typescript:", err)
		os.Exit(1)
	}
}

// generate writes events.ts and limits.ts.
func generate(document, folder string) error {
	openapi, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	events, err := eventTypes()
	if err != nil {
		return err
	}
	limits, err := limitConstants(openapi)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "events.ts"), events, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "limits.ts"), limits, 0o644)
}
