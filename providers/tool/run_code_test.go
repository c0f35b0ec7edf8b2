package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
	"turnstone/providers/code"
)

// runner is a CodeRunner that keeps its last task, with its files, and returns what it has.
type runner struct {
	task   *code.Task
	full   func() // is called before there is a slot; nil: not
	result code.Result
	used   time.Duration
	err    error
}

func (r *runner) Run(ctx context.Context, _ protocol.AccountID, task *code.Task, progress func(string)) (*code.Result, time.Duration, error) {
	progress("Running")
	if r.full != nil {
		r.full()
	}
	if task.Load != nil {
		files, err := task.Load(ctx)
		if err != nil {
			return nil, 0, err
		}
		task.Files = files
	}
	if r.task = task; r.err != nil {
		return nil, r.used, r.err
	}
	return &r.result, r.used, nil
}

// AddDaily counts n uses, as TakeDaily counts one.
func (c *counted) AddDaily(ctx context.Context, name, key string, n, limit int) (allowed bool, resets time.Time, err error) {
	for range n {
		allowed, resets, err = c.TakeDaily(ctx, name, key, limit)
	}
	return allowed, resets, err
}

func TestCodeGetsTheFilesOfItsScope(t *testing.T) {
	l, r := newLibrary(), &runner{result: code.Result{Output: "42"}}
	tool := RunCode{l, newShelf(""), &Code{Runner: r}}
	id := l.head.FileID.String()
	result, failed := l.run(t, tool, map[string]any{"code": "6 * 7", "file_ids": []string{id, id}})
	if failed != "" || result.Output != "42" || r.task.Code != "6 * 7" || len(r.task.Files) != 2 || r.task.Files[0] != (code.File{ID: id, Name: "pilot.pdf", Text: l.text}) || r.task.Files[1].Name != "pilot.pdf (2)" {
		t.Errorf("%s, %+v, %.300v", failed, result, r.task)
	}
	for want, input := range map[string]map[string]any{
		"not_found":     {"code": "1", "file_ids": []string{protocol.DeriveFileID(protocol.NewUploadID()).String()}},
		"invalid_input": {"code": "1", "file_ids": []string{id, id, id, id, id, id, id, id, id}},
	} {
		if _, failed := l.run(t, tool, input); failed != want {
			t.Errorf("%v: %s, want %s", input, failed, want)
		}
	}
	for _, input := range []map[string]any{{}, {"code": " "}, {"code": strings.Repeat("1", code.MaxCode+1)}, {"code": "1", "file_ids": []string{"../x"}}, {"code": "1", "file_ids": "x"}} {
		if _, failed := l.run(t, tool, input); failed != "invalid_input" {
			t.Errorf("%.60v: %s", input, failed)
		}
	}
	l.head.Size = code.MaxFileBytes/2 + 1
	if _, failed := l.run(t, tool, map[string]any{"code": "1", "file_ids": []string{id, id}}); failed != "too_large" {
		t.Errorf("too many bytes: %s", failed)
	}
	l.scope.ConversationID = protocol.NewConversationID()
	other := RunCode{newLibrary(), newShelf(""), &Code{Runner: r}}
	if _, failed := l.run(t, other, map[string]any{"code": "1", "file_ids": []string{id}}); failed != "not_found" {
		t.Errorf("a file of another scope: %s", failed)
	}
}

// Up to 8 MiB of texts of each call would be in memory while it waits.
func TestTheTextsOfFilesAreReadOnceTheCodeHasASlot(t *testing.T) {
	l, before := newLibrary(), -1
	r := &runner{full: func() { before = l.reads }}
	if _, failed := l.run(t, RunCode{l, newShelf(""), &Code{Runner: r}}, map[string]any{"code": "1", "file_ids": []string{l.head.FileID.String()}}); failed != "" || before != 0 || l.reads != 1 {
		t.Errorf("%s; %d texts were read before there was a slot, %d in all", failed, before, l.reads)
	}
}

// several is a shelf that keeps every write, and refuses the titles in refused.
type several struct {
	shelf
	writes  []*turnlog.ArtifactWrite
	refused string
}

func (s *several) WriteByCall(_ context.Context, w *turnlog.ArtifactWrite) (*protocol.Artifact, error) {
	if s.writes = append(s.writes, w); w.Title == s.refused {
		return nil, &turnlog.Refusal{Code: turnlog.RefusedTooMany, Detail: "There are too many."}
	}
	return &protocol.Artifact{ArtifactID: protocol.DeriveArtifactID(w.ToolID), Version: 1, Kind: w.Kind, Title: w.Title, CreatedBy: protocol.ByModel}, nil
}

// interrupted is a shelf on which an earlier run of a call has stored its third artifact.
type interrupted struct {
	several
	by    protocol.ToolID
	reads int
}

func (s *interrupted) WrittenByCall(_ context.Context, _ turnlog.Scope, by []protocol.ToolID) (map[protocol.ToolID]*protocol.Artifact, error) {
	if s.reads++; !slices.Contains(by, s.by) {
		return map[protocol.ToolID]*protocol.Artifact{}, nil
	}
	return map[protocol.ToolID]*protocol.Artifact{s.by: {ArtifactID: protocol.DeriveArtifactID(s.by), Version: 1, Kind: protocol.ArtifactSVG, Title: "Curve"}}, nil
}

func TestCodeThatHasStoredArtifactsIsNotRunAgain(t *testing.T) {
	turn := protocol.NewTurnID()
	call := &toolbox.Call{TurnID: turn, ToolID: protocol.DeriveToolID(turn, 1), Input: []byte(`{"code":"x"}`)}
	by := protocol.DeriveWriteID(call.ToolID, 3)
	r := &runner{err: errors.New("a file was deleted")}
	shelf := &interrupted{by: by}
	result, err := RunCode{newLibrary(), shelf, &Code{Runner: r}}.Run(t.Context(), call)
	if shelf.reads != 1 {
		t.Errorf("earlier artifacts are read %d times", shelf.reads)
	}
	if err != nil || r.task != nil || len(result.Events) != 1 || !strings.HasPrefix(result.Output, "The call ran before an interruption; its output is lost.") || !strings.Contains(result.Output, protocol.DeriveArtifactID(by).String()) {
		t.Fatalf("%v, %+v", err, result)
	}
	if event := result.Events[0].(*protocol.ArtifactUpdated); event.ArtifactID != protocol.DeriveArtifactID(by) || event.PartID != protocol.DeriveArtifactPartID(by) {
		t.Errorf("%+v", event)
	}
}

func TestTablesAndChartsBecomeArtifactsOnce(t *testing.T) {
	shelf := &several{refused: "Refused"}
	r := &runner{result: code.Result{Output: "printed\n", Cut: 9, Artifacts: []code.Artifact{
		{Kind: protocol.ArtifactTable, Title: "Heights", Content: "a\x00\n"}, {Kind: protocol.ArtifactTable, Title: "Refused", Content: "b\n"}, {Kind: protocol.ArtifactSVG, Title: "Curve", Content: "<svg/>"},
	}}}
	tool := RunCode{newLibrary(), shelf, &Code{Runner: r}}
	turn := protocol.NewTurnID()
	call := &toolbox.Call{TurnID: turn, ToolID: protocol.DeriveToolID(turn, 1), Input: []byte(`{"code":"x"}`)}
	var tasks []code.Task
	for range 2 { // the second run is that after a crash
		result, err := tool.Run(t.Context(), call)
		if err != nil || len(result.Events) != 2 {
			t.Fatalf("%v, %+v", err, result)
		}
		for i, n := range []int{1, 3} {
			event := result.Events[i].(*protocol.ArtifactUpdated)
			if by := protocol.DeriveWriteID(call.ToolID, n); event.ArtifactID != protocol.DeriveArtifactID(by) || event.PartID != protocol.DeriveArtifactPartID(by) {
				t.Errorf("%+v", event)
			}
		}
		for _, part := range []string{"printed\n", "cut at 8 bytes; 9 more", `The table "Refused" was not stored: There are too many.`, `svg "Curve" as the artifact art_`} {
			if !strings.Contains(result.Output, part) {
				t.Errorf("%q has no %q", result.Output, part)
			}
		}
		tasks = append(tasks, *r.task)
	}
	if len(shelf.writes) != 6 || shelf.writes[0].ToolID != shelf.writes[3].ToolID || shelf.writes[0].ToolID == shelf.writes[2].ToolID || *shelf.writes[0].Content != "a\ufffd\n" {
		t.Errorf("%d writes", len(shelf.writes))
	}
	if tasks[0].Now != tasks[1].Now || tasks[0].Seed != tasks[1].Seed || tasks[0].Seed == 0 || time.Since(tasks[0].Now) > time.Minute {
		t.Errorf("%v, %d; %v, %d", tasks[0].Now, tasks[0].Seed, tasks[1].Now, tasks[1].Seed)
	}
	r.result = code.Result{}
	if result, err := tool.Run(t.Context(), call); err != nil || !result.Empty || !strings.HasSuffix(result.Output, ".") {
		t.Errorf("%v, %+v", err, result)
	}
}

func TestTheSecondsOfCodeAreLimitedByDay(t *testing.T) {
	limits := &counted{}
	r := &runner{used: 2200 * time.Millisecond}
	tool := RunCode{newLibrary(), newShelf(""), &Code{Runner: r, Limits: limits, SecondsPerDay: 4}}
	call := &toolbox.Call{Input: []byte(`{"code":"x"}`)}
	run := func() string {
		_, err := tool.Run(t.Context(), call)
		return fmt.Sprint(err)
	}
	r.err = errors.New("it failed")
	if got := run(); got != "it failed" { // and costs 3 seconds
		t.Error(got)
	}
	if r.err = nil; run() != "<nil>" {
		t.Error("the fourth second is refused")
	}
	if got := run(); !strings.HasPrefix(got, "daily_limit: The account has used its 4 seconds of code for today. The limit resets at ") {
		t.Error(got)
	}
	limits.err = errors.New("down")
	if got := run(); !strings.HasPrefix(got, "unavailable: ") {
		t.Error(got)
	}
	tool.Code.SecondsPerDay = 0
	if got := run(); got != "<nil>" {
		t.Error(got)
	}
}
