// Package work runs the steps of research tasks: it searches places, reads sources, and asks a model. A step gets everything
// that it needs in its input, and its result is the only thing that counts, so a step can run again on any node.
//
//	actors/research ── Run(step) ──▶ Worker ──▶ Place (web, files, conversations), or a model
//
// What a model or a page says is only ever text here. Nothing that a source contains is carried out, and no text from the files
// or conversations of the account is put into a request to the web: questions for the web are written by the user, or by a
// model that has seen pages of the web only.
package work
