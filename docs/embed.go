// Package docs contains the pages of the documentation. It imports nothing of the service: cmd passes the pages to http,
// which serves them on the documentation origin.
package docs

import "embed"

// Pages are the pages as Markdown, by their paths in this folder.
//
//go:embed *.md adr/*.md
var Pages embed.FS
