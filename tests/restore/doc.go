// Package restore restores a running Turnstone from its backups and checks what is left.
//
// A Postgres archives its log while clients write, upload files and read live turns. The test takes a base backup and
// copies the objects, with the commands of docs/backup.md, and records everything that the service acknowledges and sends.
// Then it kills the service and the database, restores both into new folders, once up to the end of the archive and once
// up to a point in time, and compares: what was acknowledged before the end of the archive, or before that point, is there
// with the same bytes, and what came after is absent.
//
// `go test -v` prints how much was lost and how long the restore took. The package contains only tests.
package restore
