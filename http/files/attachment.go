package files

import (
	"context"
	stdhttp "net/http"
	"slices"
	"time"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/actors/modelinput"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/turnlog"
)

type prepareInput struct {
	resource.InConversation
	Body struct {
		FileIDs []protocol.FileID `json:"file_ids" minItems:"1" maxItems:"20" uniqueItems:"true"`
	}
}

// PreparedFile is what a model will get of a file.
type PreparedFile struct {
	FileID      protocol.FileID     `json:"file_id"`
	Filename    string              `json:"filename"`
	TextState   protocol.TextState  `json:"text_state" enum:"pending,done,none,no_text,failed" doc:"The state of the text."`
	Shown       *string             `json:"shown" enum:"whole,passages,picture,nothing" doc:"What the model gets: the whole text, passages that are chosen by the words of the message, or a picture. A model that accepts no pictures gets nothing of one. The newest 8 pictures are shown; a document of pictures has up to 8, its first pages, of which those are shown for which others leave room. Null while the file is being read (reason processing): a turn waits up to a minute for it."`
	Reason      *string             `json:"reason" enum:"processing,encrypted,damaged,too_complex,no_reader,unreadable,text_limit,no_ocr,no_text,no_space,no_pictures" doc:"Why the model gets nothing, or why that is not known yet: the file is still being read (processing), it could not be read (as in GET …/text), it has no text, or only pictures of text that the service cannot recognize (no_ocr), there is no more space, or not every model accepts pictures. Null if the model gets something."`
	Excerpt     *string             `json:"excerpt" doc:"The first 500 characters of the text; null if there is none."`
	Tokens      int                 `json:"tokens" doc:"The estimated number of tokens of the whole text."`
	ShownTokens int                 `json:"shown_tokens" doc:"The estimated number of tokens that the model gets, of pictures at most."`
	Notes       []protocol.TextNote `json:"notes" doc:"What was left out of the text or had to be guessed."`
}

type preparedFiles struct {
	Data []PreparedFile `json:"data"`
}

const (
	textInterval  = 250 * time.Millisecond // between two reads of the states of texts
	maxExcerpt    = 500                    // characters
	excerptBytes  = maxExcerpt * utf8.UTFMax
	stillRead     = "processing"
	withoutText   = "no_text"
	withoutSpace  = "no_space"
	withoutAccept = "no_pictures"
)

// prepare responds with what a model will get of the files of a message. It is a stream because it may wait for texts.
func (h *Handlers) prepare(w stdhttp.ResponseWriter, r *stdhttp.Request, in *prepareInput) error {
	prepared, err := h.prepared(r.Context(), in)
	if err != nil {
		return err
	}
	return response.SendJSON(w, stdhttp.StatusOK, prepared)
}

// awaitTexts waits until the texts of all files were read, but not longer than TextWait. Then it returns what is known of the files.
func (h *Handlers) awaitTexts(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) ([]turnlog.FileHead, error) {
	waiting, cancel := context.WithTimeout(ctx, h.TextWait)
	defer cancel()
	for {
		heads, err := h.Texts.FileHeads(ctx, account, ids)
		pending := func(head turnlog.FileHead) bool { return head.State == protocol.TextPending }
		if err != nil || waiting.Err() != nil || !slices.ContainsFunc(heads, pending) {
			return heads, err
		}
		_ = clock.Sleep(waiting, textInterval) // cut short by the end of either context, which the next round meets
	}
}

// prepared says what a model will get of the files of a message, if it is the only one with files in its conversation.
func (h *Handlers) prepared(ctx context.Context, in *prepareInput) (*preparedFiles, error) {
	account := exchange.CallerOf(ctx).AccountID
	found, err := h.Store.Files(ctx, account, in.Body.FileIDs)
	if err != nil {
		return nil, err
	}
	if states := statesOf(in.Body.FileIDs, found); slices.ContainsFunc(states, func(s protocol.FileState) bool { return s.State != protocol.FileReady }) {
		return nil, protocol.Conflict(protocol.CodeConflict, map[string][]protocol.FileState{"files": states}, "Some files do not exist any more.")
	}
	heads, err := h.awaitTexts(ctx, account, in.Body.FileIDs)
	if err != nil {
		return nil, err
	}
	prepared := preparedFiles{Data: make([]PreparedFile, len(in.Body.FileIDs))}
	for i, id := range in.Body.FileIDs {
		prepared.Data[i] = PreparedFile{FileID: id, Filename: found[id].Filename, TextState: found[id].TextState, Notes: []protocol.TextNote{}}
	}
	sizes, has, unseen := make([]int, len(in.Body.FileIDs)), make([]int, len(in.Body.FileIDs)), make([]bool, len(in.Body.FileIDs))
	for _, head := range heads { // without one that was deleted since
		i := slices.Index(in.Body.FileIDs, head.FileID)
		if unseen[i] = !h.Pictures && head.Pictures > 0; !unseen[i] {
			has[i] = head.Pictures
		}
		prepared.Data[i].Notes = head.Notes
		sizes[i], prepared.Data[i].TextState, prepared.Data[i].Tokens = head.Size, head.State, head.Tokens
	}
	pictures := modelinput.PlanPictures(has, h.Space)
	for _, head := range heads {
		if i := slices.Index(in.Body.FileIDs, head.FileID); pictures[i] > 0 {
			prepared.Data[i].Notes = modelinput.NotesBeside(&head, pictures[i])
		}
	}
	for i, shown := range modelinput.PlanTexts(sizes, modelinput.SpaceBeside(sum(pictures), h.Space)) {
		file := &prepared.Data[i]
		text, err := h.Texts.Text(ctx, account, file.FileID, 0, excerptBytes)
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound { // deleted since
			return nil, err
		}
		if err == nil && text.Text != "" {
			file.Excerpt = excerptOf(text.Text)
		}
		switch {
		case pictures[i] > 0:
			file.show("picture", pictures[i]*llm.PictureTokens)
		case file.TextState == protocol.TextPending:
			file.Reason = new(stillRead)
		case shown == 0:
			file.show("nothing", 0)
			file.Reason = new(whyNothing(text, sizes[i], has[i] > 0, unseen[i]))
		case shown == sizes[i]:
			file.show("whole", file.Tokens)
		default:
			file.show("passages", int(int64(file.Tokens)*int64(shown)/int64(sizes[i])))
		}
	}
	return &prepared, nil
}

func (f *PreparedFile) show(what string, tokens int) { f.Shown, f.ShownTokens = &what, tokens }

// whyNothing returns why a model gets nothing of a file that was read. text is nil if the file was deleted since.
func whyNothing(text *protocol.TextRange, size int, isPicture, unseen bool) string {
	switch {
	case text != nil && text.Reason != nil:
		return string(*text.Reason)
	case unseen:
		return withoutAccept
	case size > 0 || isPicture:
		return withoutSpace
	}
	return withoutText
}

func excerptOf(text string) *string {
	characters := []rune(text)
	excerpt := string(characters[:min(len(characters), maxExcerpt)])
	return &excerpt
}

func sum(of []int) (all int) {
	for _, one := range of {
		all += one
	}
	return all
}
