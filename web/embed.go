// Package web contains the built web app. It imports nothing of the service: cmd passes the files to http, which serves
// them.
//
// make builds the folder dist, which is not committed. If only go builds the program, the folder is empty, and the
// service's pages say so.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var embedded embed.FS

// Files returns the app's files: index.html and assets/. There is no index.html if the app was not built.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}
