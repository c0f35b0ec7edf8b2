// Package modelinput decides what a model gets: the instructions, the messages of a conversation, their files, and the request
// for a title.
//
// The files of all messages that the model gets share a part of its context. A text that fits is shown whole. Of a larger
// one, the passages are shown that have the words of the question: package passages ranks them. The files are numbered, so that the
// model can cite them. A model that accepts pictures gets the newest ones: see picture.go.
//
// The package calls no model and no tool, and changes nothing: it reads through the interfaces that it declares. Package turn calls it
// before each step; the tools of providers/tool read files through the same Store.
package modelinput
