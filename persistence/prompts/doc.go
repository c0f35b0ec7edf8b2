// Package prompts stores texts that a user has saved for messages.
//
// A prompt belongs to the account or to a project. A deleted project hides its prompts, and its purge erases them; those of an archived
// one do not change. Whoever creates or changes prompts locks the account first, so that no two have the same name and their number
// stays below the limit. It is called by packages http, persistence/exports and persistence/imports.
package prompts
