package shares

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestThePageLooksAsTheApp compares the colours, the width of a tab and the fonts.
func TestThePageLooksAsTheApp(t *testing.T) {
	tab, err := os.ReadFile("../../web/src/parts/code.css")
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := os.ReadFile("../../web/src/style/tokens.css")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, css := range map[string]string{`tab-size: \d+;`: string(tab), `ui-monospace, [^;]*monospace;`: string(tokens)} {
		if want := regexp.MustCompile(pattern).FindString(css); want == "" || !strings.Contains(pageCSS, want) {
			t.Errorf("page.css does not contain %q", want)
		}
	}
	colours := regexp.MustCompile(`--color-[a-z-]+: light-dark[^;]*;`).FindAllString(pageCSS, -1)
	if len(colours) < 10 {
		t.Errorf("the page has %d colours", len(colours))
	}
	for _, colour := range colours {
		if !strings.Contains(string(tokens), colour) {
			t.Errorf("the app does not have %s", colour)
		}
	}
}

func TestThePageUsesTheTypefaceOfTheApp(t *testing.T) {
	app := fstest.MapFS{"assets/atkinson-hyperlegible-next-latin-wght-normal-x.woff2": {}}
	for _, l := range []*layout{newLayout(app), newLayout(nil)} {
		var page strings.Builder
		if err := l.template.Execute(&page, &document{Texts: &languages[0]}); err != nil {
			t.Fatal(err)
		}
		for element, directive := range map[string]string{"<style>": "style-src", `<script type="module">`: "script-src"} {
			_, content, _ := strings.Cut(page.String(), element)
			content, _, _ = strings.Cut(content, "</")
			if want := directive + " 'sha256-" + hashOfElement(content) + "'"; !strings.Contains(l.policy, want) {
				t.Errorf("the policy %s lacks %s", l.policy, want)
			}
		}
	}
	if face := fontFace(app); !strings.Contains(face, `url("/assets/atkinson-hyperlegible-next-latin-wght-normal-x.woff2")`) {
		t.Error(face)
	}
}
