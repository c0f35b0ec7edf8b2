package files

import (
	"context"
	"slices"

	"turnstone/actors/attachment"
	"turnstone/actors/llm"
	"turnstone/http/resource"
	"turnstone/http/router"
	"turnstone/protocol"
)

type prepareInput struct {
	resource.InConversation
	Body struct {
		FileIDs []protocol.FileID `json:"file_ids" minItems:"1" maxItems:"20" uniqueItems:"true"`
	}
}

// PreparedFile is what a model will get of a file.
type PreparedFile struct {
	FileID      protocol.FileID    `json:"file_id"`
	Filename    string             `json:"filename"`
	TextState   protocol.TextState `json:"text_state" enum:"pending,done,none,failed" doc:"While it is pending, the fields below are 0. A turn waits up to a minute for it."`
	Shown       string             `json:"shown" enum:"whole,passages,picture,nothing" doc:"What the model gets: the whole text, passages that are chosen by the words of the message, or a picture. A model that accepts no pictures gets nothing of one. The newest 8 pictures are shown."`
	Tokens      int                `json:"tokens" doc:"The estimated number of tokens of the whole text."`
	ShownTokens int                `json:"shown_tokens" doc:"The estimated number of tokens that the model gets, of a picture at most."`
}

type preparedFiles struct {
	Data []PreparedFile `json:"data"`
}

// prepare says what a model will get of the files of a message, if it is the only one with files in its conversation.
func (h *Handlers) prepare(ctx context.Context, in *prepareInput) (*resource.Body[preparedFiles], error) {
	account := router.CallerOf(ctx).AccountID
	found, err := h.Store.Files(ctx, account, in.Body.FileIDs)
	if err != nil {
		return nil, err
	}
	if states := statesOf(in.Body.FileIDs, found); slices.ContainsFunc(states, func(s protocol.FileState) bool { return s.State != protocol.FileReady }) {
		return nil, protocol.Conflict(protocol.CodeConflict, map[string][]protocol.FileState{"files": states}, "Some files do not exist any more.")
	}
	heads, err := h.Texts.FileHeads(ctx, account, in.Body.FileIDs)
	if err != nil {
		return nil, err
	}
	prepared := preparedFiles{Data: make([]PreparedFile, len(in.Body.FileIDs))}
	for i, id := range in.Body.FileIDs {
		prepared.Data[i] = PreparedFile{FileID: id, Filename: found[id].Filename, TextState: found[id].TextState}
	}
	sizes, isPicture := make([]int, len(in.Body.FileIDs)), make([]bool, len(in.Body.FileIDs))
	for _, head := range heads { // without one that was deleted since
		i := slices.Index(in.Body.FileIDs, head.FileID)
		isPicture[i] = h.Pictures && head.HasPicture
		sizes[i], prepared.Data[i].TextState, prepared.Data[i].Tokens = head.Size, head.State, head.Tokens
	}
	pictures := attachment.PlanPictures(isPicture, h.Space)
	for i, shown := range attachment.Plan(sizes, attachment.SpaceBeside(count(pictures), h.Space)) {
		file := &prepared.Data[i]
		switch {
		case pictures[i]:
			file.Shown, file.ShownTokens = "picture", llm.PictureTokens
		case shown == 0:
			file.Shown = "nothing"
		case shown == sizes[i]:
			file.Shown, file.ShownTokens = "whole", file.Tokens
		default:
			file.Shown, file.ShownTokens = "passages", int(int64(file.Tokens)*int64(shown)/int64(sizes[i]))
		}
	}
	return resource.OK(prepared), nil
}

func count(flags []bool) (set int) {
	for _, flag := range flags {
		if flag {
			set++
		}
	}
	return set
}
