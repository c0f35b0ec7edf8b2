package shares

import (
	"context"
	"fmt"
	"io"
	stdhttp "net/http"
	"time"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/transfer"
	"turnstone/persistence/shares"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// Files reads the contents of files; see package persistence/files.
type Files interface {
	Open(ctx context.Context, account protocol.AccountID, id protocol.FileID, offset, length int64) (io.ReadCloser, error)
}

const (
	maxDownloads       = 256 // of a node at the same time
	maxDownloadsOfHost = 8   // of one address
	// recheckInterval is how often a download asks whether its share still has the file.
	recheckInterval = 4 * time.Second
)

var recheckTimeout = timelimit.Of(2 * time.Second)

type downloadInput struct {
	Token string `path:"token" doc:"The token of the share."`
	N     int    `path:"n" minimum:"1" maximum:"50" doc:"The number of the file in the files of the share."`
	transfer.FileInput
}

// download sends a file of a share, or one range of it.
func (h *Handlers) download(w stdhttp.ResponseWriter, r *stdhttp.Request, in *downloadInput) error {
	find := func(ctx context.Context) (*shares.OpenedFile, error) {
		return h.Store.OpenFile(ctx, hashOf(in.Token), in.N)
	}
	return send(h, w, r, find, &in.FileInput, func(_ context.Context, file *shares.OpenedFile) (*transfer.File, error) {
		return &transfer.File{
			Filename: file.Filename, MediaType: file.MediaType, Size: file.Size, SHA256: file.SHA256, CreatedAt: file.CreatedAt,
			Open: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
				return h.Files.Open(ctx, file.AccountID, file.FileID, offset, length)
			},
		}, nil
	})
}

// send sends what find finds in a share, or one range of it, while it finds it. It needs no session, and ignores that of the caller.
func send[T any](
	h *Handlers, w stdhttp.ResponseWriter, r *stdhttp.Request, find func(context.Context) (T, error), in *transfer.FileInput,
	content func(context.Context, T) (*transfer.File, error),
) error {
	release, err := h.takeDownload(r)
	if err != nil {
		return err
	}
	defer release()
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	found, err := find(bounded)
	if err != nil {
		return err
	}
	file, err := content(bounded, found)
	if err != nil {
		return err
	}
	has := func(ctx context.Context) error {
		_, err := find(ctx)
		return err
	}
	return transfer.SendFile(w, r, &grant{r.Context(), has, h.Recheck}, h.Log, file, in)
}

// takeDownload takes a slot for a download, until release is called.
func (h *Handlers) takeDownload(r *stdhttp.Request) (release func(), err error) {
	address := auth.AddressKey(exchange.Of(r.Context()).Address)
	if !h.downloads.Take(address, maxDownloadsOfHost) {
		return nil, tooMany(maxDownloadsOfHost)
	}
	release = func() { h.downloads.Release(address) }
	if h.downloads.Open() > maxDownloads {
		release()
		return nil, tooMany(maxDownloads)
	}
	return release, nil
}

func tooMany(limit int) error {
	return &protocol.Error{Code: protocol.CodeTooManyRequests, Detail: fmt.Sprintf("At most %d shared files may be downloaded at once.", limit), RetryAfter: 1}
}

// grant permits the download of a file or an artifact while its share has it.
type grant struct {
	ctx      context.Context                 // of the request
	find     func(ctx context.Context) error // protocol.CodeNotFound: the share does not have it any more
	interval time.Duration
}

// Watch implements transfer.Grant. A share that cannot be read at the moment has not ended.
func (g *grant) Watch(end func()) (stop func()) {
	ctx, cancel := context.WithCancel(g.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(g.interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if g.hasEnded(ctx) {
				end()
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (g *grant) hasEnded(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, recheckTimeout)
	defer cancel()
	return protocol.CodeOf(g.find(ctx)) == protocol.CodeNotFound
}

// Ended implements transfer.Grant.
func (*grant) Ended() error { return &protocol.Error{Code: protocol.CodeNotFound} }

// link is a file of a share as its page shows it.
type link struct {
	protocol.SharedFile
	Path string
}
