// Package artifacts stores artifacts and their versions. A change is a new version, based on the one that its author saw: of two
// changes to the same version, one succeeds, and the other gets a conflict. Changes of the artifacts of a conversation lock the
// conversation, as its turns do. Versions count in the storage quota of the account.
//
// A version that a tool call writes carries the call, so that a call that is run again has no second effect. What the model of a
// turn may read and write are the artifacts of its conversation. The package does not erase artifacts: they end with their
// conversation (package conversations). A fork gets copies of them (there, too).
package artifacts
