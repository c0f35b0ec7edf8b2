package files

import (
	"context"
	"encoding/hex"
	"fmt"
	"mime"
	stdhttp "net/http"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/sse"
	"turnstone/http/transfer"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/protocol/uploadlog"
)

type createUploadInput struct {
	Body struct {
		Filename       string                   `json:"filename" maxLength:"1024" doc:"1 to 255 characters. Control and direction characters are removed, and / and \\ are replaced by _."`
		MediaType      string                   `json:"media_type" maxLength:"255" doc:"The media type of the content; application/octet-stream: detect it. Parameters are ignored."`
		Size           int64                    `json:"size" minimum:"1" doc:"The exact number of bytes of the content."`
		SHA256         *string                  `json:"sha256,omitempty" pattern:"^[0-9a-fA-F]{64}$" patternDescription:"64 hexadecimal digits" doc:"The SHA-256 of the content. A content with another one is refused."`
		Purpose        protocol.UploadPurpose   `json:"purpose" enum:"attachment,project,library"`
		ConversationID *protocol.ConversationID `json:"conversation_id,omitempty" doc:"The conversation in which the file is to be attached."`
		ProjectID      *protocol.ProjectID      `json:"project_id,omitempty" doc:"The project that the file is for. Required with the purpose project."`
	}
}

func (h *Handlers) create(ctx context.Context, in *createUploadInput) (*resource.CreatedOnce[protocol.Upload], error) {
	spec, err := h.spec(ctx, in)
	if err != nil {
		return nil, err
	}
	made, err := h.Uploads.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return resource.NewCreatedOnce("", made), nil
}

// spec returns the specification of a new upload.
func (h *Handlers) spec(ctx context.Context, in *createUploadInput) (*uploadlog.Spec, error) {
	body := &in.Body
	name, err := filetype.CleanName("body.filename", body.Filename)
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(body.MediaType)
	media = filetype.Canonical(media)
	switch {
	case err != nil:
		return nil, protocol.Invalid("body.media_type", "must be a media type, for example application/pdf")
	case body.Purpose == protocol.UploadForProject && body.ProjectID == nil:
		return nil, protocol.Invalid("body.project_id", "is required with the purpose project")
	case body.Size > h.MaxBytes:
		return nil, protocol.Errorf(protocol.CodeTooLarge, "A file can have at most %s.", sizeText(h.MaxBytes))
	case !filetype.Accepts(media):
		return nil, protocol.Errorf(protocol.CodeUnsupportedMedia, "Files of the type %s are not accepted.", media)
	}
	spec := &uploadlog.Spec{
		AccountID: exchange.CallerOf(ctx).AccountID, UploadID: protocol.NewUploadID(), Filename: name, MediaType: media, Size: body.Size,
		Purpose: body.Purpose, ConversationID: body.ConversationID, ProjectID: body.ProjectID, SessionID: &exchange.CallerOf(ctx).SessionID,
		ObjectName: uploadlog.NewObjectName(), CreatedAt: h.Now(),
	}
	spec.ExpiresAt = spec.CreatedAt.Add(h.Lifetime)
	if body.SHA256 != nil {
		if spec.SHA256, err = hex.DecodeString(*body.SHA256); err != nil {
			return nil, protocol.Invalid("body.sha256", "must have 64 hexadecimal digits")
		}
	}
	return spec, nil
}

// InUpload is embedded by inputs of routes below an upload.
type InUpload struct {
	UploadID protocol.UploadID `path:"upload_id"`
}

type getUploadInput struct {
	InUpload
	Wait string `query:"wait" doc:"Wait up to this time for a change of an upload that has not ended, for example 20s; at most 30s."`
}

const maxWait = 30 * time.Second

// getUpload is a stream because it may wait longer than other requests.
func (h *Handlers) getUpload(w stdhttp.ResponseWriter, r *stdhttp.Request, in *getUploadInput) error {
	var wait time.Duration
	if in.Wait != "" {
		var err error
		if wait, err = time.ParseDuration(in.Wait); err != nil || wait < 0 || wait > maxWait {
			return protocol.Invalid("query.wait", "must be a duration from 0s to 30s, for example 20s")
		}
	}
	upload, err := h.Uploads.Upload(r.Context(), exchange.CallerOf(r.Context()).AccountID, in.UploadID, wait)
	if err != nil {
		return err
	}
	return response.SendJSON(w, stdhttp.StatusOK, upload)
}

// putContent receives the content of an upload. What the header of the request already shows is refused before the body
// is read.
func (h *Handlers) putContent(w stdhttp.ResponseWriter, r *stdhttp.Request, in *InUpload) (err error) {
	caller := exchange.CallerOf(r.Context())
	if err := transfer.CheckUncompressed(r); err != nil {
		return err
	}
	if r.Header.Get("Content-Range") != "" {
		return protocol.Errorf(protocol.CodeInvalidBody, "Partial content is not accepted: send all of it, without Content-Range.")
	}
	upload, err := h.Uploads.Upload(r.Context(), caller.AccountID, in.UploadID, 0)
	if err != nil {
		return err
	}
	if upload.State != protocol.UploadPending {
		return uploadlog.Conflict(upload)
	}
	if err := checkHeader(r, upload); err != nil {
		return err
	}
	ctx, body, end := transfer.Receive(w, r, h.Sessions)
	defer end(&err)
	received, err := h.Uploads.Receive(ctx, caller.AccountID, in.UploadID, body)
	if err != nil {
		return err
	}
	status := stdhttp.StatusOK
	if !received.State.Terminal() {
		status = stdhttp.StatusAccepted
	}
	return response.SendJSON(w, status, received)
}

// checkHeader compares the header of a request with content with the upload.
func checkHeader(r *stdhttp.Request, upload *protocol.Upload) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	media = filetype.Canonical(media)
	switch {
	case err != nil || media != upload.MediaType && media != filetype.OctetStream:
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The Content-Type must be %s or %s.", upload.MediaType, filetype.OctetStream)
	case r.ContentLength > upload.Size:
		return protocol.Errorf(protocol.CodeTooLarge, "The content is larger than the %d bytes that the upload declares.", upload.Size)
	case r.ContentLength >= 0 && r.ContentLength < upload.Size:
		return protocol.Errorf(protocol.CodeInvalidBody, "The content has %d bytes, but the upload declares %d.", r.ContentLength, upload.Size)
	}
	return nil
}

func (h *Handlers) cancel(ctx context.Context, in *InUpload) (*resource.Body[*protocol.Upload], error) {
	cancelled, err := h.Uploads.Cancel(ctx, exchange.CallerOf(ctx).AccountID, in.UploadID)
	if err != nil {
		return nil, err
	}
	return resource.OK(cancelled), nil
}

type uploadEventsInput struct {
	InUpload
	resource.ResumeInput
}

// getEvents streams the events of an upload after a sequence.
func (h *Handlers) getEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, in *uploadEventsInput) error {
	after, err := in.Position()
	if err != nil {
		return err
	}
	account := exchange.CallerOf(r.Context()).AccountID
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	upload, err := h.Uploads.Upload(bounded, account, in.UploadID, 0)
	if err != nil {
		return err
	}
	return h.Streams.ServeLog(w, r, account, &exchange.Log{Ended: upload.State.Terminal(), Last: upload.LastSequence, After: after, Follow: func(after int64) sse.Reader {
		return h.Uploads.Follow(account, in.UploadID, after)
	}})
}

// sizeText returns a size in the largest unit that divides it, for example 100 MB. The app counts in the same units.
func sizeText[N int | int64](bytes N) string {
	for _, unit := range []struct {
		name  string
		bytes N
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}
