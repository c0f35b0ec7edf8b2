package modelinput

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/protocol/foreign"
)

const (
	titleTokens       = 512      // limit of the model's answer: some models reason first
	titleExcerpt      = 2_000    // characters of each message that the model sees
	maxGeneratedTitle = 80       // characters; users may set longer titles (protocol.MaxTitle)
	maxTitleAnswer    = 16 << 10 // bytes of text, of which a part may be reasoning; a model that writes more ignores its limit
	titleTimeout      = 30 * time.Second
)

const titlePrompt = "Write a title of three to six words for this conversation, in the language of its first message. " +
	"Answer with the title only: no quotes, no period, no Markdown."

var (
	// errNoTitle means that the model's answer contains no title.
	errNoTitle = errors.New("the model wrote no title")
	// errEndless means that the model does not end its answer.
	errEndless = fmt.Errorf("the model wrote more than %d bytes for a title", maxTitleAnswer)
)

// WriteTitle asks the model for a title of a conversation that starts with question and answer. used is the usage of
// the call, including a call that failed. The call ends after titleTimeout, and a model that does not end its answer is cut off.
func WriteTitle(ctx context.Context, model *metering.Model, account protocol.AccountID, route routing.Route, question, answer string) (title string, used llm.Usage, err error) {
	request := llm.Request{
		Route: route.Name, Model: route.Model, System: titlePrompt, MaxOutputTokens: titleTokens, FirstByte: route.FirstByte, Step: 1,
		Messages: []llm.Message{
			{Role: "user", Text: excerpt(question)},
			{Role: "assistant", Text: excerpt(answer)},
			{Role: "user", Text: "Write the title now."},
		},
	}
	if strings.TrimSpace(answer) == "" {
		request.Messages = request.Messages[:1]
	}
	request.TurnInput = 1
	ctx, cancel := context.WithTimeout(ctx, titleTimeout)
	defer cancel()
	var text strings.Builder
	written := 0
	used, err = model.Stream(ctx, account, request, func(chunk llm.Chunk) error {
		switch chunk.Kind {
		case llm.ChunkText:
			text.WriteString(chunk.Text)
			if written += len(chunk.Text); written > maxTitleAnswer {
				return errEndless
			}
		case llm.ChunkThought:
			text.Reset()
		}
		return nil
	})
	if err != nil {
		return "", used, fmt.Errorf("asking for a title: %w", err)
	}
	if title = cleanTitle(text.String()); title == "" {
		return "", used, errNoTitle
	}
	return title, used, nil
}

func excerpt(text string) string {
	text = strings.TrimSpace(text)
	if short := clip.Runes(text, titleExcerpt); short != text {
		return short + " …"
	}
	return text
}

// cleanTitle returns the first line without the quotes, Markdown and final period that models put around a title.
func cleanTitle(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(foreign.Clean(foreign.Storable(text))), "\n")
	line = strings.Trim(strings.TrimSpace(line), `"'“”‘’«»#*_ `+"`")
	line = strings.Join(strings.Fields(strings.TrimSuffix(line, ".")), " ")
	return clip.Ellipsis(line, maxGeneratedTitle)
}
