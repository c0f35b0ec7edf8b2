package model_test

import (
	"strings"
	"testing"

	"turnstone/providers/model"
)

func TestHeadersAreReadLineByLine(t *testing.T) {
	headers, err := model.ParseHeaders("x-team: blue\r\n\n  \nAuthorization:Basic YTpi \nX-Route:\ta: b\n")
	if err != nil || len(headers) != 3 || headers.Get("X-Team") != "blue" || headers.Get("Authorization") != "Basic YTpi" || headers.Get("X-Route") != "a: b" {
		t.Errorf("%v (%v)", headers, err)
	}
}

func TestABadHeaderIsRefusedWithoutShowingItsValue(t *testing.T) {
	for _, text := range []string{
		"sesame", ": sesame", "X Team: sesame", "X-Team : sesame", "X-Teäm: sesame", "X-Team: sesame\x00", "X-Team: sesäme", "X-Team:",
		"X-Team: sesame\x7f", "Host: sesame", "content-length: sesame", "Transfer-Encoding: sesame", "X-Team: sesame\nx-team: sesame",
		"X-Team: a\r\rX-Other: sesame",
	} {
		headers, err := model.ParseHeaders("X-First: good\n" + text)
		if err == nil || headers != nil || strings.Contains(err.Error(), "sesame") || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q: %v (%v)", text, headers, err)
		}
	}
}
