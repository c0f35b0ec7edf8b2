// Package extract reads the text of files, with the positions of their pages, sheets, slides and chapters, and the size
// and the thumbnails of pictures.
//
//	Extractor   starts a child process for each content, limits it, and checks what it prints
//	Child       runs in that process: it restricts itself, then calls Read, or becomes pdftotext for a PDF
//	Read        reads a content in this process; only Child and tests call it
//
// A content may be hostile. So nothing in a child has the environment, the files or the network of the service, and a
// child has limits of memory, time and output. Package cmd starts Child and uses Extractor; it is the only caller.
package extract
