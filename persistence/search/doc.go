// Package search finds conversations by their titles, messages by their text, files by their names and their texts, and artifacts by
// their titles and the text of their current versions.
//
//	a title, a message or an artifact changes   a trigger adds a row to search_pending, in the same transaction
//	IndexJob, every few seconds      tokenizes what is pending, in batches, into search_rows
//	Find                             asks the index (search_window in the migrations) and reads what is pending
//
// A text of a file is divided into sections, which are found like messages. IndexSection indexes them when they are stored.
//
// The tokenizer is the same for texts and for queries. Find matches pending texts with the rules by which the index
// matches, so a text is found from its commit on, indexed or not. The package knows only the text that a reader of the
// conversation sees. It is called by package http and by the job queue.
package search
