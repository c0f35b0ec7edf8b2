package modelinput

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"turnstone/actors/passages"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// The limits of what a model gets of the files of a project, in every turn.
const (
	// projectShare is the part of the context that they may have: 1/projectShare, and at most maxProject bytes.
	projectShare = 8
	maxProject   = 32 << 10
	// Only the newest files are searched: at most maxProjectFiles, with at most maxProjectText bytes of text together.
	maxProjectFiles = 100
	maxProjectText  = 8 << 20
)

// The files in a request, of messages and of the project, have numbers from 1 below those of the sources that tools find: otherwise
// this constant does not compile.
const _ = uint(protocol.FirstToolSource - 1 - maxFiles - maxProjectFiles)

// projectText is the text of a file of the project, within the joined texts of all.
type projectText struct {
	head        turnlog.FileHead
	start, size int
	blocks      []protocol.TextBlock
	chosen      []passages.Passage // within its own text
}

// project returns the passages of the files of the project that have words of the question, as files with numbers from
// first. Files that messages have are left out.
func (f *Files) project(ctx context.Context, attached []protocol.FileID, first int) (section string, sources []protocol.Source, err error) {
	if f.ProjectID == nil || f.Question == "" {
		return "", nil, nil
	}
	heads, err := f.Store.ProjectFileHeads(ctx, f.AccountID, *f.ProjectID, maxProjectFiles)
	if err != nil {
		return "", nil, fmt.Errorf("reading the files of a project: %w", err)
	}
	var joined strings.Builder
	var texts []*projectText
	var all []passages.Passage
	of := map[int]*projectText{} // by the start of a passage
	for _, head := range heads {
		if head.State != protocol.TextDone || slices.Contains(attached, head.FileID) || joined.Len()+head.Size > maxProjectText {
			continue
		}
		text, blocks, err := f.Store.FileContent(ctx, f.AccountID, head.FileID)
		if err != nil {
			return "", nil, fmt.Errorf("reading a file of a project: %w", err)
		}
		t := &projectText{head: head, start: joined.Len(), size: len(text), blocks: blocks}
		texts = append(texts, t)
		joined.WriteString(text)
		for _, p := range passages.Split(text, blocks) {
			p.Start, p.End = p.Start+t.start, p.End+t.start
			all, of[p.Start] = append(all, p), t
		}
	}
	passages.Rank(all, joined.String(), f.Question)
	slices.SortStableFunc(all, func(a, b passages.Passage) int { return cmp.Compare(b.Score, a.Score) })
	left := min(f.Space/projectShare, maxProject)
	for _, p := range all {
		if p.Score == 0 {
			break
		}
		if size := p.End - p.Start; size <= left {
			t := of[p.Start]
			p.Start, p.End = p.Start-t.start, p.End-t.start
			t.chosen, left = append(t.chosen, p), left-size
		}
	}
	for _, t := range texts {
		if len(t.chosen) == 0 {
			continue
		}
		slices.SortFunc(t.chosen, func(a, b passages.Passage) int { return cmp.Compare(a.Start, b.Start) })
		body, read := render(joined.String()[t.start:][:t.size], t.blocks, t.chosen, true)
		number := first + len(sources)
		section += frame(number, &t.head, "[This is a file of the project. These passages have words of the question.]\n"+body)
		sources = append(sources, protocol.Source{Number: number, FileID: t.head.FileID, Title: t.head.Filename, Size: t.size, Blocks: read})
	}
	return section, sources, nil
}
