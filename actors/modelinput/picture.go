package modelinput

import (
	"context"
	"fmt"
	"slices"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// The limits of the pictures that a model gets.
const (
	// maxPictures limits the pictures of one request, with the newest first. With 512 KiB for each, a request has 4 MiB of
	// pictures, which is 6 MiB as base64. The providers accept 20 MiB and more.
	maxPictures  = 8
	pictureSpace = llm.PictureTokens * bytesPerToken // of the context
)

// PlanPictures returns how many pictures of each file a model that accepts them gets in a context with a space. pictures says how many the
// files have, in the order of the messages. Every file shows one, the newest first, before one shows more.
func PlanPictures(pictures []int, space int) []int {
	shown := make([]int, len(pictures))
	left := min(maxPictures, space/share/pictureSpace)
	for _, most := range []int{1, maxPictures} {
		for i, has := range slices.Backward(pictures) {
			more := min(has, most, shown[i]+left) - shown[i]
			shown[i] += more
			left -= more
		}
	}
	return shown
}

// SpaceBeside returns the space for texts in a context with a space that also has pictures.
func SpaceBeside(pictures, space int) int { return max(0, space-pictures*pictureSpace) }

// pictures reads the files that the model gets as pictures. One that was deleted in the meantime is absent.
func (f *Files) pictures(ctx context.Context, ids []protocol.FileID, heads map[protocol.FileID]*turnlog.FileHead) (map[protocol.FileID][][]byte, error) {
	if !f.Pictures {
		return nil, nil
	}
	has := make([]int, len(ids))
	for i, id := range ids {
		if heads[id] != nil {
			has[i] = heads[id].Pictures
		}
	}
	pictures := map[protocol.FileID][][]byte{}
	for i, most := range PlanPictures(has, f.Space) {
		if most == 0 {
			continue
		}
		contents, err := f.Store.FilePictures(ctx, f.AccountID, ids[i], most)
		if err != nil {
			return nil, fmt.Errorf("reading the pictures of a conversation: %w", err)
		}
		pictures[ids[i]] = contents
	}
	return pictures, nil
}

// show adds the pictures of a file to a message, and the file that says which of its pictures they are.
func show(message *turnlog.HistoryMessage, number int, head *turnlog.FileHead, contents [][]byte) {
	first := len(message.Pictures) + 1
	message.Pictures = slices.Clip(message.Pictures)
	for _, content := range contents {
		message.Pictures = append(message.Pictures, turnlog.NewPicture(content))
	}
	body := fmt.Sprintf("This file is picture %d of this message.", first)
	if len(contents) > 1 {
		body = fmt.Sprintf("The pages 1 to %d of this file are the pictures %d to %d of this message.", len(contents), first, len(message.Pictures))
	}
	shown := *head
	shown.Notes = NotesBeside(head, len(contents))
	add(message, frame(number, &shown, body))
}

// NotesBeside returns the notes on a file of which a model gets a number of pictures: they count the pages that it does not get.
func NotesBeside(head *turnlog.FileHead, pictures int) []protocol.TextNote {
	if head.Pictures < 2 {
		return head.Notes
	}
	return protocol.WithPagesNotShown(head.Notes, head.Pages-pictures)
}
