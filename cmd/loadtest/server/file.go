package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"

	"turnstone/cmd/loadtest/console"
)

// File is the baseline server of uploads. It hashes the body of a PUT while it writes it to a file, syncs the file, and
// deletes it after the response.
type File struct {
	Folder string `required:"" help:"Folder of the files."`
	Listen string `default:"127.0.0.1:0" help:"Address to listen on."`
}

// Run serves until ctx ends.
func (c File) Run(ctx context.Context, p *console.Console) error {
	return serveBaseline(ctx, p, c.Listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, err := os.CreateTemp(c.Folder, "baseline-")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // the folder is temporary
		hash, err := store(file, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(hash))) // the client waits for nothing after it
		_, _ = io.WriteString(w, hash)                            // the client may have disconnected
		_ = http.NewResponseController(w).Flush()
	}))
}

func store(file *os.File, body io.Reader) (hash string, err error) {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), body); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), file.Sync()
}
