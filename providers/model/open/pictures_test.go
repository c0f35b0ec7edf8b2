package open_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol/turnlog"
	"turnstone/providers/model"
)

// Each format gets pictures before the text of their message, in its own words.
func TestPicturesAreSentInEachFormat(t *testing.T) {
	png := turnlog.NewPicture([]byte("\x89PNG\r\n\x1a\n rest"))
	for _, each := range []struct{ api, detail, want string }{
		{"chat", "", `[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgogcmVzdA=="}},{"type":"text","text":"What is it?"}]`},
		{"chat", "low", `[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgogcmVzdA==","detail":"low"}},{"type":"text","text":"What is it?"}]`},
		{"responses", "", `[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgogcmVzdA==","detail":"auto"},{"type":"input_text","text":"What is it?"}]`},
		{"responses", "high", `[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgogcmVzdA==","detail":"high"},{"type":"input_text","text":"What is it?"}]`},
		{"anthropic", "", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgogcmVzdA=="}},{"type":"text","text":"What is it?"`},
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }))
		request := question()
		request.PictureDetail = each.detail
		request.Messages = []llm.Message{{Role: "user", Text: "What is it?", Pictures: []turnlog.Picture{png}}}
		_ = connect(t, each.api, server.URL, model.Options{}).Stream(t.Context(), request, func(llm.Chunk) error { return nil })
		server.Close()
		if !json.Valid(body) || !strings.Contains(string(body), `"content":`+each.want) {
			t.Errorf("%s, %q: %s", each.api, each.detail, body)
		}
	}
}
