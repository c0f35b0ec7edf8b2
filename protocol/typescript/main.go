// Command typescript generates the TypeScript types of a turn's events for the web app, from the registry in protocol.
// `make generate` runs it; a test checks that the committed file matches the registry.
//
// It does not generate the types of requests and responses: those come from protocol/openapi.json.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: typescript <file to write>")
		os.Exit(2)
	}
	text, err := eventTypes()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "typescript:", err)
		os.Exit(1)
	}
}
