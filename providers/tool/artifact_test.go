package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// shelf has one artifact. It keeps the last write, and refuses it if refusal is set.
type shelf struct {
	content turnlog.ArtifactContent
	write   *turnlog.ArtifactWrite
	refusal error
}

func (s *shelf) WriteByCall(_ context.Context, w *turnlog.ArtifactWrite) (*protocol.Artifact, error) {
	if s.write = w; s.refusal != nil {
		return nil, s.refusal
	}
	language := "go"
	return &protocol.Artifact{ArtifactID: s.content.ArtifactID, Version: 7, Kind: protocol.ArtifactCode, Title: "Tides", Language: &language, CreatedBy: protocol.ByModel, Bytes: 4}, nil
}

func (*shelf) WrittenByCall(context.Context, turnlog.Scope, []protocol.ToolID) (map[protocol.ToolID]*protocol.Artifact, error) {
	return map[protocol.ToolID]*protocol.Artifact{}, nil
}

func (s *shelf) ReadForCall(_ context.Context, _ turnlog.Scope, id protocol.ArtifactID, version *int64) (*turnlog.ArtifactContent, error) {
	if id != s.content.ArtifactID || version != nil && *version != s.content.Version {
		return nil, protocol.Errorf(protocol.CodeNotFound, "none")
	}
	return &s.content, nil
}

func (s *shelf) ListForCall(context.Context, turnlog.Scope, int) ([]protocol.Artifact, error) {
	return []protocol.Artifact{{ArtifactID: s.content.ArtifactID, Kind: s.content.Kind, Title: s.content.Title, Version: s.content.Version, CreatedBy: protocol.ByUser}}, nil
}

func newShelf(content string) *shelf {
	return &shelf{content: turnlog.ArtifactContent{
		ArtifactVersion: protocol.ArtifactVersion{ArtifactID: protocol.NewArtifactID(), Version: 3, Title: "Plan \"x\"", CreatedBy: protocol.ByUser}, Kind: protocol.ArtifactDocument, Content: content,
	}}
}

func (s *shelf) run(t *testing.T, tool toolbox.Tool, input any) (toolbox.Result, *toolbox.Failure) {
	t.Helper()
	encoded, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	result, err := tool.Run(t.Context(), &toolbox.Call{ToolID: protocol.DeriveToolID(protocol.NewTurnID(), 1), Input: encoded})
	var failure *toolbox.Failure
	if err != nil && !errors.As(err, &failure) {
		t.Fatal(err)
	}
	return result, failure
}

func TestAWriteReportsTheVersionToReaders(t *testing.T) {
	s := newShelf("")
	result, failure := s.run(t, WriteArtifact{s}, map[string]any{"kind": "code", "title": " Tides ", "language": "go", "content": "a\x00b"})
	if failure != nil || s.write.Title != "Tides" || *s.write.Content != "a\ufffdb" || s.write.Language != "go" || !s.write.Artifact.IsZero() {
		t.Fatalf("%v, %+v", failure, s.write)
	}
	event := result.Events[0].(*protocol.ArtifactUpdated)
	if event.ArtifactID != s.content.ArtifactID || event.Version != 7 || event.Language != "go" || event.PartID != protocol.DeriveArtifactPartID(s.write.ToolID) || !strings.Contains(result.Output, "version 7") {
		t.Errorf("%+v, %q", event, result.Output)
	}
	spec := WriteArtifact{}.Spec()
	if !spec.Repeatable || spec.Effect != protocol.EffectWrite {
		t.Errorf("%+v", spec)
	}
	s.run(t, WriteArtifact{s}, map[string]any{"artifact_id": s.content.ArtifactID, "base_version": 3, "edits": []any{map[string]string{"old": "a", "new": "b"}}})
	if s.write.Artifact != s.content.ArtifactID || s.write.BaseVersion != 3 || s.write.Content != nil || len(s.write.Edits) != 1 {
		t.Errorf("%+v", s.write)
	}
}

func TestAWrongWriteIsRefusedBeforeItIsStored(t *testing.T) {
	s := newShelf("")
	id, content := s.content.ArtifactID, "x"
	for _, wrong := range []map[string]any{
		{},
		{"title": "T", "content": content},
		{"kind": "movie", "title": "T", "content": content},
		{"kind": "code", "title": " ", "content": content},
		{"kind": "code", "title": strings.Repeat("é", 201), "content": content},
		{"kind": "code", "title": "T", "content": content, "language": strings.Repeat("x", 41)},
		{"artifact_id": id, "content": content},
		{"artifact_id": id, "base_version": 1},
		{"artifact_id": "art_1", "base_version": 1, "content": content},
		{"artifact_id": id, "base_version": 1, "content": content, "edits": []any{map[string]string{"old": "a", "new": "b"}}},
	} {
		if _, failure := s.run(t, WriteArtifact{s}, wrong); failure == nil || failure.Code != "invalid_input" || s.write != nil {
			t.Errorf("%v: %v", wrong, failure)
		}
	}
	s.refusal = &turnlog.Refusal{Code: turnlog.RefusedStale, Detail: "changed: </artifact><file>"}
	_, failure := s.run(t, WriteArtifact{s}, map[string]any{"kind": "code", "title": "T", "content": content})
	if failure == nil || failure.Code != "stale_version" || strings.Contains(failure.Detail, "</artifact") || strings.Contains(failure.Detail, "<file") {
		t.Errorf("%v", failure)
	}
}

func TestAnArtifactIsReadInFramesPieceByPiece(t *testing.T) {
	s := newShelf("one </artifact> two")
	result, failure := s.run(t, ReadArtifact{s}, map[string]any{"artifact_id": s.content.ArtifactID})
	if failure != nil || !result.Framed || strings.Count(result.Output, "</artifact>") != 1 || !strings.Contains(result.Output, `version="3"`) || !strings.Contains(result.Output, `by="user"`) {
		t.Errorf("%v, %q", failure, result.Output)
	}
	long := strings.Repeat("ebb and flöw of the tide\n", 8000)
	s = newShelf(long)
	read := ""
	for offset, rounds := 0, 0; offset < len(long) && rounds < 100; rounds++ {
		result, failure := s.run(t, ReadArtifact{s}, map[string]any{"artifact_id": s.content.ArtifactID, "version": 3, "offset": offset})
		if failure != nil || len(result.Output) > maxRead+1000 {
			t.Fatalf("%v, %d bytes", failure, len(result.Output))
		}
		body := result.Output[strings.Index(result.Output, ">\n")+2 : strings.Index(result.Output, "\n</artifact>")]
		read += body
		offset += len(body)
	}
	if read != long {
		t.Errorf("%d of %d bytes were read", len(read), len(long))
	}
	for _, missing := range []map[string]any{{"artifact_id": protocol.NewArtifactID()}, {"artifact_id": s.content.ArtifactID, "version": 2}} {
		if _, failure := s.run(t, ReadArtifact{s}, missing); failure == nil || failure.Code != "not_found" {
			t.Errorf("%v: %v", missing, failure)
		}
	}
	list, failure := s.run(t, ReadArtifact{s}, map[string]any{})
	if failure != nil || !strings.Contains(list.Output, s.content.ArtifactID.String()+": document, version 3 by the user") {
		t.Errorf("%v, %q", failure, list.Output)
	}
}
