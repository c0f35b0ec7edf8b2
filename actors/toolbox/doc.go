// Package toolbox defines the functions that a model may call, and runs one call. The tools themselves are in providers/tool;
// package turn calls Run.
//
// A call has the scope of its turn: a tool reads nothing outside of it. Which sources of the account a tool may read will be
// part of the scope once the user can consent to each.
package toolbox
