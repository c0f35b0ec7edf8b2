// Package files stores uploads and the files that they create. The bytes are in the object store: package
// actors/upload receives and publishes them, and this package deletes them.
//
// An upload and its events change only by AppendUpload, which is fenced by owner, epoch and sequence. A file exists only
// with the commit that makes its upload ready, so a file that can be read is clean and whole.
package files
