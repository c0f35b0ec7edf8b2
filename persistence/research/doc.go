// Package research stores research tasks: their rows, their journals, their logs and the sources that they keep. A task that
// has ended with a report leaves an artifact and a message in its conversation.
//
// Every write of an owner is fenced by owner, epoch and next sequence. The package knows nothing of what the entries of a
// journal mean.
package research
