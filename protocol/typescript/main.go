// Command typescript writes the types of a turn's events for the web app, from the registry in protocol. Run by
// `make generate`; a test holds the committed file to the code.
//
// The types of requests and answers are not made here: they come from protocol/openapi.json.
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
