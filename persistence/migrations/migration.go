// Package migrations has the statements that create and change the schema, in order. A file that was released never
// changes.
package migrations

import "embed"

// Files are the migrations, named after their number.
//
//go:embed *.sql
var Files embed.FS
