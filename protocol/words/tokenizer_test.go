package words

import (
	"slices"
	"strings"
	"testing"
)

func textsOf(tokens []Token) (texts []string) {
	for _, t := range tokens {
		texts = append(texts, t.Text)
	}
	return texts
}

func TestTextsAreComparedWithoutCaseAccentsAndCompatibilityForms(t *testing.T) {
	for text, want := range map[string][]string{
		"Élan, élan E\u0301LAN":            {"elan", "elan", "elan"},
		"Straße STRASSE":                   {"strasse", "strasse"},
		"ＡＢＣ ﬁne ①②":                       {"abc", "fine", "12"},
		"ΣΊΣΥΦΟΣ Σίσυφος":                  {"σισυφοσ", "σισυφοσ"},
		"Йод ёлка":                         {"иод", "елка"},
		"Łódź søster İstanbul ılık":        {"lodz", "soster", "istanbul", "ilik"},
		"co\u00adoperate don't foo_bar":    {"cooperate", "don", "t", "foo", "bar"},
		"3.14 e-mail a@b.example":          {"3", "14", "e", "mail", "a", "b", "example"},
		"हिन्दी भाषा":                      {"हिन्दी", "भाषा"},
		"مُحَمَّد أحمد":                    {"محمد", "احمد"},
		"שָׁלוֹם":                          {"שלום"},
		"東京都":                              {"東京", "京都", "都"},
		"ｻｰﾊﾞｰ サーバー":                       {"サー", "ーバ", "バー", "ー", "サー", "ーバ", "バー", "ー"},
		"학교에서 \u1112\u1161\u11a8교":         {"학교", "교에", "에서", "서", "학교", "교"},
		"iPhone手机 2":                       {"iphone", "手机", "机", "2"},
		"ภาษา":                             {"ภา", "าษ", "ษา", "า"},
		"\x00\ufffd😀 -- \"\" &|!() <-> :*": nil,
		"":                                 nil,
	} {
		if got := textsOf(Tokenize(Normalize(text))); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := textsOf(Tokenize(strings.Repeat("a", 100))); len(got[0]) != MaxRunes {
		t.Errorf("a long word has %d characters", len(got[0]))
	}
}
