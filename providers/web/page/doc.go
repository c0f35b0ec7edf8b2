// Package page reads web pages as Markdown, for a model.
//
//	Reader   asks robots.txt, requests a page, and says what it got
//	rules    are those of a robots.txt file (RFC 9309)
//	document is an HTML page from which everything is removed that its readers do not see
//
// Pages may be hostile: every step is bounded, and what a page says is returned as data, without a judgement. The package
// connects only through package outbound. Documents other than HTML and texts are read by Documents, in processes of their
// own.
package page
