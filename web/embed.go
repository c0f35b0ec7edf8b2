// Package web holds the built web app. It knows nothing of the service; http serves what it holds, cmd hands it over.
//
// What lies in dist is made by make and not committed, so a build by go alone has an empty folder and the service says
// so on the pages of the app.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var embedded embed.FS

// Files are the app's files: index.html and assets/. Without a built app there is no index.html among them.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}
