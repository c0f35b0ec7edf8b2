// Package charset recognizes the encodings of texts that do not name theirs.
//
//	Detect   returns the encoding that bytes look like, and how certain that is
//
// Valid UTF-8 is always UTF-8. Packages extract and web/page are the callers.
package charset
