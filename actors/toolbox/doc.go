// Package toolbox defines the functions that a model may call, and runs one call. The tools themselves are in providers/tool;
// package turn calls Run.
//
// A call has the scope of its turn: a tool reads nothing outside of it, unless the account consents to that source of memory.
// The consent decides whether the tool is offered in a request to the model, and again whether a call returns anything.
package toolbox
