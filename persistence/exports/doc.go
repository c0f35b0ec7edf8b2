// Package exports writes what an account owns: one conversation as JSON or Markdown, or everything as a ZIP archive. It
// reads pages by key and writes them to an io.Writer, so its memory does not grow with the content of the account. It
// holds no transaction while it waits for a reader.
//
// What an export shows: a conversation that exists from the beginning to the end of the export is in it exactly once,
// with all messages and branches that it had when its file was started. Later messages of its branches can be in it. Each
// file is consistent in itself (the parent of every message is in the file), but two files may show different times.
// Conversations that are deleted in the meantime are left out, or their file says that it is incomplete. Temporary
// conversations and those of deleted projects are not exported.
//
// A new kind of resource needs a section in the file export.go of its noun, which persistence/stores.go collects, and package
// imports restores it or reports that it does not. The sections of conversations, artifacts and files are in this package,
// because an archive puts them together. Its callers are package http and tests.
package exports
