package modelinput

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"turnstone/actors/passages"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	// bytesPerToken is a conservative estimate, used to choose what a model gets before anything is sent: real tokenizers
	// have 3 to 4.5 bytes per token of English, and fewer for other scripts.
	bytesPerToken = 3
	// share is the part of the context that files may have: 1/share.
	share = 2
	// maxPassages limits the passages of one file, in bytes: about 20 printed pages.
	maxPassages = 64 << 10
	// maxRanked limits the texts whose passages are ranked for one request, in bytes: ranking 1 MiB takes 13 ms
	// for English and 29 ms for Japanese (BenchmarkRank).
	maxRanked = 16 << 20
	// maxFiles limits the files of one request, with the newest first. Each takes some space, also if its text is left out.
	maxFiles = 50
	// leastPassages is the least space for which passages are chosen.
	leastPassages = 500
)

// Space returns how much text the model of a route can get, in bytes.
func Space(route routing.Route) int {
	return max(0, route.ContextTokens-route.MaxOutputTokens) * bytesPerToken
}

// PlanTexts returns how much of the texts of files a model gets in a context with a space, in bytes. sizes are those of the
// texts, in the order of the messages. A text that is not whole is shown in passages, or not at all: 0.
func PlanTexts(sizes []int, space int) []int {
	shown := make([]int, len(sizes))
	left := space / share
	for i := len(sizes) - 1; i >= 0; i-- { // the newest first
		most := left / (i + 1)
		switch {
		case sizes[i] <= most:
			shown[i] = sizes[i]
		case most >= leastPassages:
			shown[i] = min(most, maxPassages)
		}
		left -= shown[i]
	}
	return shown
}

// Store reads files. Package persistence/files implements it.
type Store interface {
	// FileHeads returns files without their texts. Those that do not exist any more are absent.
	FileHeads(ctx context.Context, account protocol.AccountID, files []protocol.FileID) ([]turnlog.FileHead, error)
	// FilePictures returns a file as pictures for a model: a picture itself, or the first pages of a document of pictures. It returns
	// up to most of them, each of at most 512 KiB, and none if the file was deleted.
	FilePictures(ctx context.Context, account protocol.AccountID, file protocol.FileID, most int) ([][]byte, error)
	// FileContent returns the text of a file. It is empty if the file does not exist any more.
	FileContent(ctx context.Context, account protocol.AccountID, file protocol.FileID) (text string, blocks []protocol.TextBlock, err error)
	// ProjectFileHeads is FileHeads for the newest files of a project.
	ProjectFileHeads(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, limit int) ([]turnlog.FileHead, error)
}

// ErrPending means that the text of a file was not read yet.
var ErrPending = errors.New("the text of a file was not read yet")

// Files says how files are shown.
type Files struct {
	Store     Store // nil: no message has files
	AccountID protocol.AccountID
	ProjectID *protocol.ProjectID // the files of this project are searched, too; nil: none
	Question  string              // selects the passages of long texts
	Space     int                 // of the context, in bytes
	Pictures  bool                // the model accepts pictures
	Wait      bool                // fail with ErrPending if a text was not read yet; false: tell the model that it was not
}

// Show adds the files to the messages of a history. sources are the files whose texts it shows. A file that several messages
// have is shown in the last of them. Passages of the files of the project are shown in the last message, which is the question. If
// history and files are longer than the space, the oldest messages are left out.
func (f *Files) Show(ctx context.Context, history []turnlog.HistoryMessage) (shown []turnlog.HistoryMessage, sources []protocol.Source, trimmed bool, err error) {
	if f.Store == nil {
		return history, nil, false, nil
	}
	ids, last := attached(history)
	heads, err := f.heads(ctx, ids)
	if err != nil {
		return nil, nil, false, err
	}
	ofProject, sources, err := f.project(ctx, ids, len(ids)+1)
	if err != nil || len(ids) == 0 && ofProject == "" {
		return history, nil, false, err
	}
	shown = slices.Clone(history)
	sizes := make([]int, len(ids))
	for i, id := range ids {
		if heads[id] != nil {
			sizes[i] = heads[id].Size
		}
	}
	if ofProject != "" {
		add(&shown[len(shown)-1], ofProject)
	}
	pictures, err := f.pictures(ctx, ids, heads)
	if err != nil {
		return nil, nil, false, err
	}
	count := 0
	for _, contents := range pictures {
		count += len(contents)
	}
	space := SpaceBeside(count, f.Space)
	plan := PlanTexts(sizes, space)
	ranked := rankable(sizes, plan)
	for i, most := range plan {
		message := &shown[last[ids[i]]]
		if contents := pictures[ids[i]]; len(contents) > 0 {
			show(message, i+1, heads[ids[i]], contents)
			continue
		}
		section, source, err := f.section(ctx, i+1, ids[i], heads[ids[i]], most, ranked[i])
		if err != nil {
			return nil, nil, false, err
		}
		add(message, section)
		if source != nil {
			sources = append(sources, *source)
		}
	}
	first := 0
	for size := sizeOf(shown); size > space && first < len(shown)-1; first++ {
		size -= sizeOf(shown[first : first+1])
	}
	return shown[first:], sources, first > 0, nil
}

// rankable returns of which texts the passages are ranked: the newest of those that are not shown whole, within maxRanked.
func rankable(sizes, shown []int) []bool {
	ranked := make([]bool, len(sizes))
	left := maxRanked
	for i := len(sizes) - 1; i >= 0; i-- {
		if shown[i] > 0 && shown[i] < sizes[i] && sizes[i] <= left {
			ranked[i], left = true, left-sizes[i]
		}
	}
	return ranked
}

// attached returns the newest files of a history in the order of the messages in which they are shown, and the indexes of
// these messages.
func attached(history []turnlog.HistoryMessage) (ids []protocol.FileID, last map[protocol.FileID]int) {
	last = map[protocol.FileID]int{}
	for i, message := range slices.Backward(history) {
		for _, id := range slices.Backward(message.Attachments) {
			if _, known := last[id]; known {
				continue
			}
			if len(ids) == maxFiles {
				slices.Reverse(ids)
				return ids, last
			}
			ids, last[id] = append(ids, id), i
		}
	}
	slices.Reverse(ids)
	return ids, last
}

func sizeOf(messages []turnlog.HistoryMessage) (size int) {
	for i := range messages {
		for j := range messages[i].Parts {
			size += len(messages[i].Parts[j].Text) + len(messages[i].Parts[j].Code)
		}
	}
	return size
}

func (f *Files) heads(ctx context.Context, ids []protocol.FileID) (map[protocol.FileID]*turnlog.FileHead, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := f.Store.FileHeads(ctx, f.AccountID, ids)
	if err != nil {
		return nil, fmt.Errorf("reading the files of a conversation: %w", err)
	}
	heads := map[protocol.FileID]*turnlog.FileHead{}
	for i := range found {
		if f.Wait && found[i].State == protocol.TextPending {
			return nil, ErrPending
		}
		heads[found[i].FileID] = &found[i]
	}
	return heads, nil
}

// section returns what a model gets of a file, at most most bytes of its text, and the file as a source if it gets any.
func (f *Files) section(ctx context.Context, number int, id protocol.FileID, head *turnlog.FileHead, most int, ranked bool) (section string, source *protocol.Source, err error) {
	if head == nil {
		return frame(number, nil, "This file was deleted."), nil, nil
	}
	body := ""
	switch {
	case head.State == protocol.TextPending:
		body = "The text of this file was not read yet."
	case head.State == protocol.TextFailed:
		body = "The text of this file could not be read: " + CauseOf(head.Reason) + "."
	case head.State == protocol.TextNoText:
		body = "This file has no text that can be read: " + CauseOf(head.Reason) + "."
	case head.State != protocol.TextDone:
		body = "This file has no text."
	case head.Size == 0:
		body = "This file is empty, or has only pictures."
	case most == 0:
		body = "The text of this file is left out, because there is no more space."
	default:
		text, blocks, err := f.Store.FileContent(ctx, f.AccountID, id)
		if err != nil {
			return "", nil, fmt.Errorf("reading a file of a conversation: %w", err)
		}
		var read []protocol.TextBlock
		body, read = f.body(text, blocks, most, ranked)
		source = &protocol.Source{Number: number, FileID: id, Title: head.Filename, Size: len(text), Blocks: read}
	}
	return frame(number, head, body), source, nil
}

// body returns a text, or passages of it, with the numbers of the pages. read are the pages of which it has a part.
func (f *Files) body(text string, blocks []protocol.TextBlock, most int, ranked bool) (body string, read []protocol.TextBlock) {
	if len(text) <= most {
		return render(text, blocks, whole(text, blocks), false)
	}
	note, question := "[These passages have words of the question. The rest of the text is left out.]\n", f.Question
	if !ranked {
		note, question = "[This is the beginning of the text. The rest is left out.]\n", ""
	}
	body, read = render(text, blocks, passages.Choose(text, blocks, question, most), true)
	return note + body, read
}
