package transfer

import (
	"context"
	"fmt"
	"io"
	stdhttp "net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// safeTypes are the media types that a download names. A browser shows any other content, if at all, as bytes of an
// unknown type, so that it runs no script of a file.
var safeTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"}

// FileInput has the headers of a request for the content of a file.
type FileInput struct {
	Range   string `header:"Range" doc:"One range of bytes, for example bytes=0-1023."`
	IfRange string `header:"If-Range" doc:"An ETag or a Last-Modified of the content: if it has another one, all of it is sent instead of the range."`
}

// File is a file to be sent. Its content never changes.
type File struct {
	Filename  string
	MediaType string // detected
	Size      int64
	SHA256    string // hexadecimal
	CreatedAt time.Time
	// Open returns length bytes of the content from an offset. The caller closes it.
	Open func(ctx context.Context, offset, length int64) (io.ReadCloser, error)
}

// SendFile responds with the content of a file, or one range of it, as Send does.
func SendFile(w stdhttp.ResponseWriter, r *stdhttp.Request, grant Grant, log *zap.Logger, file *File, in *FileInput) error {
	content := validatorsOf(file)
	if in.IfRange != "" && !content.same(in.IfRange) {
		in.Range = ""
	}
	wanted, err := parseRange(in.Range, file.Size)
	if err != nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", file.Size))
		return err
	}
	media := filetype.OctetStream
	if slices.Contains(safeTypes, file.MediaType) {
		media = file.MediaType
	}
	if media == "text/plain" {
		media += "; charset=utf-8"
	}
	return Send(w, r, grant, log, response.Stored(file.Filename), media, func(ctx context.Context, to *Download) error {
		bytes, err := file.Open(ctx, wanted.offset, wanted.length)
		if err != nil {
			return err
		}
		defer func() { _ = bytes.Close() }() // it was only read
		content.write(w.Header())
		WriteSafeHeader(w.Header())
		writeRange(w.Header(), wanted, file.Size)
		if wanted.partial {
			to.WriteHeader(stdhttp.StatusPartialContent)
		}
		n, err := io.Copy(to, bytes)
		if err == nil && n < wanted.length {
			err = &protocol.Error{Code: protocol.CodeUnavailable, Err: io.ErrUnexpectedEOF}
		}
		return err
	})
}

// WriteSafeHeader makes a browser run nothing of a content that is shown as a page.
func WriteSafeHeader(header stdhttp.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func writeRange(header stdhttp.Header, wanted byteRange, size int64) {
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Length", strconv.FormatInt(wanted.length, 10))
	if wanted.partial {
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", wanted.offset, wanted.offset+wanted.length-1, size))
	}
}

// byteRange is the part of a content that a response has.
type byteRange struct {
	offset, length int64
	partial        bool
}

// parseRange parses the header Range for a content of a size. A header of another unit is ignored, as RFC 9110 requires.
// Several ranges, and a range outside of the content, are errors.
func parseRange(header string, size int64) (byteRange, error) {
	spec, ofBytes := strings.CutPrefix(header, "bytes=")
	if !ofBytes {
		return byteRange{length: size}, nil
	}
	first, last, found := strings.Cut(strings.TrimSpace(spec), "-")
	start, startErr := strconv.ParseUint(first, 10, 62)
	end, endErr := strconv.ParseUint(last, 10, 62)
	switch {
	case strings.Contains(spec, ","):
		return byteRange{}, protocol.Errorf(protocol.CodeRange, "Several ranges in one request are not supported.")
	case !found || first != "" && startErr != nil || last != "" && endErr != nil || first == "" && last == "":
		return byteRange{}, protocol.Errorf(protocol.CodeRange, "The Range header must have the form bytes=0-1023.")
	case first == "": // the last bytes
		length := min(int64(end), size)
		if length == 0 {
			return byteRange{}, protocol.Errorf(protocol.CodeRange, "The range is empty.")
		}
		return byteRange{size - length, length, true}, nil
	case int64(start) >= size, last != "" && end < start:
		return byteRange{}, protocol.Errorf(protocol.CodeRange, "The file has %d bytes.", size)
	case last == "":
		return byteRange{int64(start), size - int64(start), true}, nil
	}
	return byteRange{int64(start), min(int64(end)+1, size) - int64(start), true}, nil
}

// DocumentFile describes the responses of SendFile.
func DocumentFile(_ huma.API, op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for _, media := range append([]string{filetype.OctetStream}, safeTypes...) {
		content[media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	op.Responses[strconv.Itoa(stdhttp.StatusOK)] = &huma.Response{
		Description: "The content.", Content: content, Headers: route.Headers("Content-Disposition", "Accept-Ranges", "ETag", "Last-Modified"),
	}
	op.Responses[strconv.Itoa(stdhttp.StatusPartialContent)] = &huma.Response{
		Description: "The range.", Content: content, Headers: route.Headers("Content-Disposition", "Accept-Ranges", "Content-Range", "ETag", "Last-Modified"),
	}
	op.Errors = append(op.Errors, stdhttp.StatusRequestedRangeNotSatisfiable)
}
