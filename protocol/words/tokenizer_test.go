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
		"हिन्दी हिंदी भाषा":                {"हिंदी", "हिंदी", "भाषा"},
		"क़लम कलम चाँद चांद":               {"कलम", "कलम", "चांद", "चांद"},
		"مُحَمَّد أحمد":                    {"محمد", "احمد"},
		"שָׁלוֹם":                          {"שלום"},
		"東京都":                              {"東京", "京都", "都"},
		"ｻｰﾊﾞｰ サーバー":                       {"サー", "ーバ", "バー", "ー", "サー", "ーバ", "バー", "ー"},
		"학교에서 \u1112\u1161\u11a8교":         {"학교", "교에", "에서", "서", "학교", "교"},
		"iPhone手机 2":                       {"phone", "iphone", "手机", "机", "2"},
		"ภาษา":                             {"ภา", "าษ", "ษา", "า"},
		"\x00\ufffd -- \"\" &|!() <-> :*":  nil,
		"مدرسة على کتاب ۱۲۳ ٤٥":            {"مدرسه", "علي", "كتاب", "123", "45"},
		"५ ทาง 12":                         {"5", "ทา", "าง", "ง", "12"},
		"C++ c# F#, (.NET) C#7 a+b A+ x":   {"c", "c++", "c", "c#", "f", "f#", "net", ".net", "c", "7", "a", "b", "a", "a+", "x"},
		"C++11 C+++ 1+ 2# g++.":            {"c", "c++", "11", "c", "c++", "1", "2", "g", "g++"},
		".env end. Now a.b ..c .5":         {"env", ".env", "end", "now", "a", "b", "c", "5"},
		"httpServer HTTPServer iPhone v2X": {"http", "server", "httpserver", "http", "server", "httpserver", "phone", "iphone", "v2x"},
		"ÜberGröße ABC aBcD":               {"uber", "grosse", "ubergrosse", "abc", "bc", "abcd"},
		"😀👍🏽 👨‍👩‍👧":                        {"😀👍", "👍", "👨👩", "👩👧", "👧"},
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
