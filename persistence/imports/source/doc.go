// Package source reads conversations from the exports of Turnstone, ChatGPT and Claude: a ZIP archive or a JSON file, which
// may have several values, one after another. From an archive of Turnstone, it also reads the projects and the files.
//
// Exports can be of any size, and a file can be hostile. Nothing here is recursive, no structure grows with the file, and
// each limit below has a name. What is beyond a limit or damaged is left out and noted; what can be read is kept.
//
// The formats of ChatGPT and Claude are not published; testdata has examples that were written by hand from what is known
// about them.
package source
