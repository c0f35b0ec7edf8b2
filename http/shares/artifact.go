package shares

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	stdhttp "net/http"

	"turnstone/http/resource"
	"turnstone/http/transfer"
	"turnstone/persistence/shares"
	"turnstone/protocol"
)

type downloadArtifactInput struct {
	Token  string `path:"token" doc:"The token of the share."`
	N      int    `path:"n" minimum:"1" maximum:"50" doc:"The number of the artifact in the artifacts of the share."`
	Format string `query:"format" enum:"csv" doc:"Of a table: csv for spreadsheets. Default: the content as it is stored."`
	transfer.FileInput
}

// downloadArtifact sends the content of an artifact of a share, or one range of it.
func (h *Handlers) downloadArtifact(w stdhttp.ResponseWriter, r *stdhttp.Request, in *downloadArtifactInput) error {
	find := func(ctx context.Context) (*shares.OpenedArtifact, error) {
		return h.Store.OpenArtifact(ctx, hashOf(in.Token), in.N)
	}
	return send(h, w, r, find, &in.FileInput, func(ctx context.Context, opened *shares.OpenedArtifact) (*transfer.File, error) {
		content, err := h.Store.ArtifactContent(ctx, opened)
		if err != nil {
			return nil, err
		}
		file, err := resource.FileOfArtifact(ctx, in.Format, opened.Kind, opened.Language, opened.Title, content)
		if err != nil {
			return nil, err
		}
		if in.Format != "" {
			opened.SHA256 = sumOf(string(file.Content))
		}
		return &transfer.File{
			Filename: opened.Title + file.Extension, MediaType: "text/plain", Size: int64(len(file.Content)),
			SHA256: opened.SHA256, CreatedAt: opened.CreatedAt,
			Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(file.Content[offset : offset+length])), nil
			},
		}, nil
	})
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// artifactLink is an artifact of a share as its page shows it.
type artifactLink struct {
	protocol.SharedArtifact
	Path string
}

// artifactsOf returns the artifacts of a page. A table is downloaded as spreadsheets read it.
func artifactsOf(token string, page *protocol.SharedPage) []artifactLink {
	links := make([]artifactLink, len(page.Artifacts))
	for i, artifact := range page.Artifacts {
		path := fmt.Sprintf("/shared/%s/artifacts/%d", token, artifact.N)
		if artifact.Kind == protocol.ArtifactTable {
			path += "?format=csv"
		}
		links[i] = artifactLink{artifact, path}
	}
	return links
}
