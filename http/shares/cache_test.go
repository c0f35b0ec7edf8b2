package shares

import (
	"context"
	"strings"
	"testing"
	"time"

	"turnstone/persistence/shares"
	"turnstone/protocol"
)

func TestAPageIsRenderedOnceForItsLanguage(t *testing.T) {
	h := New(Config{})
	shared := &protocol.SharedPage{Title: "t", Page: 1, PageCount: 1, Messages: []protocol.SharedMessage{{Role: protocol.RoleAssistant, Parts: []protocol.SharedPart{{Type: protocol.PartText, Text: strings.Repeat("*a* ", 10)}}}}}
	render := func(ctx context.Context, share protocol.ShareID, language string) ([]byte, error) {
		shown := &document{Texts: textsFor(language), Shared: shared}
		shown.key = pageKey{shares.Ref{ShareID: share}, 1, 0, shown.Texts.Language}
		return h.render(ctx, shown)
	}
	first, err := render(t.Context(), protocol.ShareID{1}, "en")
	if err != nil || !strings.Contains(string(first), "<em>a</em>") {
		t.Fatalf("%s, %v", first, err)
	}
	for range renderSlots { // the pages of the cache need no slot
		h.slots <- struct{}{}
	}
	if again, err := render(t.Context(), protocol.ShareID{1}, "en"); err != nil || string(again) != string(first) {
		t.Errorf("again: %s, %v", again, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	for share, language := range map[protocol.ShareID]string{{1}: "ja", {2}: "en"} {
		if body, err := render(ctx, share, language); err == nil {
			t.Errorf("%s %s was not rendered: %s", share, language, body)
		}
	}
}

func TestAPageThatTheContextCutIsNotCached(t *testing.T) {
	h := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	shown := &document{
		Texts: textsFor("en"), key: pageKey{page: 1},
		Shared: &protocol.SharedPage{Messages: []protocol.SharedMessage{{Role: protocol.RoleAssistant, Parts: []protocol.SharedPart{{Type: protocol.PartText, Text: "*a*"}}}}},
	}
	if _, err := h.render(ctx, shown); err == nil && !shown.budget.Late() {
		t.Error("a rendering without time is complete")
	}
	if _, cached := h.pages.Get(shown.key); cached {
		t.Error("it is cached")
	}
}
