// Package archive writes the ZIP archive of an export: its files, its manifest, and the lists in them. What is in it is decided by
// the sections of the nouns, which package exports calls. It reads no store.
package archive
