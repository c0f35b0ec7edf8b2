package files

import (
	"context"
	"io"
	stdhttp "net/http"
	"strconv"
	"strings"

	"turnstone/http/exchange"
	"turnstone/http/response"
	"turnstone/http/transfer"
	"turnstone/protocol/turnlog"
)

type downloadInput struct {
	InFile
	transfer.FileInput
}

// getContent sends the content of a file, or one range of it.
func (h *Handlers) getContent(w stdhttp.ResponseWriter, r *stdhttp.Request, in *downloadInput) error {
	account := exchange.CallerOf(r.Context()).AccountID
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	file, err := h.Store.File(bounded, account, in.FileID)
	if err != nil {
		return err
	}
	return transfer.SendFile(w, r, transfer.OfSession(r, h.Sessions), h.Log, &transfer.File{
		Filename: file.Filename, MediaType: file.MediaType, Size: file.Size, SHA256: file.SHA256, CreatedAt: file.CreatedAt,
		Open: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
			return h.Store.Open(ctx, account, in.FileID, offset, length)
		},
	}, &in.FileInput)
}

// getThumbnail sends the small version of a picture. It is never a part of the content.
func (h *Handlers) getThumbnail(w stdhttp.ResponseWriter, r *stdhttp.Request, in *InFile) error {
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	picture, err := h.Texts.Thumbnail(bounded, exchange.CallerOf(r.Context()).AccountID, in.FileID)
	if err != nil {
		return err
	}
	media := turnlog.NewPicture(picture).MediaType
	name := response.Attachment("thumbnail", "thumbnail", "."+strings.TrimPrefix(media, "image/"))
	return transfer.Send(w, r, transfer.OfSession(r, h.Sessions), h.Log, name, media, func(_ context.Context, to *transfer.Download) error {
		transfer.WriteSafeHeader(w.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
		_, err := to.Write(picture)
		return err
	})
}
