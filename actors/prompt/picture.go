package prompt

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

// PlanPictures returns which pictures a model that accepts them gets in a context with a space. isPicture says which of the files
// are pictures, in the order of the messages.
func PlanPictures(isPicture []bool, space int) []bool {
	shown := make([]bool, len(isPicture))
	left := min(maxPictures, space/share/pictureSpace)
	for i, is := range slices.Backward(isPicture) { // the newest first
		if is && left > 0 {
			shown[i] = true
			left--
		}
	}
	return shown
}

// SpaceBeside returns the space for texts in a context with a space that also has pictures.
func SpaceBeside(pictures, space int) int { return max(0, space-pictures*pictureSpace) }

// pictures reads the files that the model gets as pictures. One that was deleted in the meantime is absent.
func (f *Files) pictures(ctx context.Context, ids []protocol.FileID, heads map[protocol.FileID]*turnlog.FileHead) (map[protocol.FileID][]byte, error) {
	if !f.Pictures {
		return nil, nil
	}
	isPicture := make([]bool, len(ids))
	for i, id := range ids {
		isPicture[i] = heads[id] != nil && heads[id].HasPicture
	}
	pictures := map[protocol.FileID][]byte{}
	for i, shown := range PlanPictures(isPicture, f.Space) {
		if !shown {
			continue
		}
		content, err := f.Store.FilePicture(ctx, f.AccountID, ids[i])
		if err != nil {
			return nil, fmt.Errorf("reading a picture of a conversation: %w", err)
		}
		if content != nil {
			pictures[ids[i]] = content
		}
	}
	return pictures, nil
}

// show adds a picture to a message, and the file that says which of its pictures it is.
func show(message *turnlog.HistoryMessage, number int, head *turnlog.FileHead, content []byte) {
	message.Pictures = append(slices.Clip(message.Pictures), turnlog.NewPicture(content))
	section := frame(number, head, fmt.Sprintf("This file is picture %d of this message.", len(message.Pictures)))
	add(message, section)
}
