// Package source reads conversations from the exports of Turnstone, ChatGPT, Claude, Open WebUI, LibreChat, DeepSeek and Gemini: a ZIP
// archive, an HTML file of Gemini, or a JSON file, which may have several values, one after another or in lines. It also reads the projects,
// the files and the artifacts that an export has.
//
// Exports can be of any size, and a file can be hostile. Nothing here is recursive, no structure grows with the file, and
// each limit below has a name. What is beyond a limit or damaged is left out and noted; what can be read is kept.
//
// The formats of the other services are not published; the tests have examples that were written by hand from what is known
// about them.
package source
