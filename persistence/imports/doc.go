// Package imports stores the imports of an account, and runs them. An upload is stored in the object store in chunks, then
// a job reads it with package source and writes one conversation after the other.
//
// One transaction writes a conversation of up to 500 messages and 1 MiB, and the counts of the import. A larger one
// is written in several transactions behind a tombstone, which the last of them removes. After a crash another job reads
// the file again and skips the conversations that are counted; every write is fenced by the number of the run. A
// conversation that an earlier import has written is found by its identifier in the source.
//
// Of an archive of this service, the job first imports the projects, their instructions, the prompts, the files and the instructions of the account, each of which is counted in a
// transaction of its own. A file gets an upload, whose identifier follows from the import and the file, so that a run
// after a crash continues it. What projects and files of exports have become is in import_items; conversations find theirs there.
//
// It parses no format itself (package source does), and receives no upload (package http/transfer does).
//
// Cancelling takes effect at once: the next write of the job finds another state and stops. What was imported stays.
package imports
