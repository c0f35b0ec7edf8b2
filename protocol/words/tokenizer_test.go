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

func TestOtherFormsOfWordsAreFoundByTheirStems(t *testing.T) {
	for _, c := range []struct {
		text, query string
		found       bool
	}{
		{"He was running in the park", "run", true},
		{"He was running in the park", "runs", true},
		{"This is the relation of them", "relations", true},
		{"Die Häuser sind groß und alt", "Haus", true},
		{"Das Haus ist nicht da", "Häuser", true},
		{"Les chevaux sont dans la rue", "chevaux", true},
		{"Nous avons continué pour vous", "continuer", true},
		{"Las canciones que son muy buenas", "canción", true},
		{"Le ragazze sono nella casa", "ragazza", true},
		{"As meninas que não são ricas", "menina", true},
		{"De lichamelijke oefening is niet voor het kind", "lichamelijk", true},
		{"Flickorna är inte här och det är bra", "flicka", true},
		{"Новые книги стоят на полке", "книга", true},
		{"Новые книги стоят на полке", "новый", true},
		{"هذه المدرسة كبيرة", "مدرسة", true},
		{"Meine Krankenversicherung ist nicht teuer", "Versicherung", true},
		{"Die Krankenversicherungen sind nicht teuer", "Versicherung", true},
		{"Die Bestellung ist nicht da", "Stellung", false}, // a prefix makes no compound
		{"The overlordships of them", "lordship", false},   // nor does English
		{"Frau Mueller ist da", "Müller", true},
		{"Write to Mr Müller", "Mueller", true},
		{"The Universe is big", "banana", false},
	} {
		language, _ := Detect(c.text)
		tokenizer := Tokenizer{Stems: &Stems{Language: language}}
		tokenizer.Add(Normalize(c.text))
		forms := append(Forms(c.query, QueryLanguages(c.query)), Form{Text: foldWord(strings.ToLower(c.query))})
		got := slices.ContainsFunc(tokenizer.Tokens, func(token Token) bool {
			return slices.ContainsFunc(forms, func(f Form) bool { return f.Text == token.Text || f.Prefix && strings.HasPrefix(token.Text, f.Text) })
		})
		if got != c.found {
			t.Errorf("%s in %s: %v; %v, %v", c.query, c.text, got, textsOf(tokenizer.Tokens), forms)
		}
	}
}

func TestTheLanguageOfATextIsDetected(t *testing.T) {
	for text, want := range map[string]Language{
		"":                         NoLanguage,
		"東京都の天気":                   NoLanguage,
		"Fixing bugs":              English, // nothing tells another language
		"Rezept für den Kuchen":    German,
		"Où est la gare pour vous": French,
		"¿Cómo está el tiempo?":    Spanish,
		"Che cosa è nel cielo":     Italian,
		"O que não é para mim":     Portuguese,
		"Ik weet het niet":         Dutch,
		"Jag vet inte vad det är":  Swedish,
		"Как это работает":         Russian,
		"Що це є і як їх":          NoLanguage, // Ukrainian
		"ما هذا الشيء":             Arabic,
		"این چه چیزی است":          NoLanguage, // Persian
	} {
		if got, _ := Detect(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func FuzzStems(f *testing.F) {
	for _, seed := range []string{"running", "ÄÖÜß", "qu'il", "книга", "المدرسة", "y", "aeaeue", "\xff", "ıİ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, language := range append([]Language{NoLanguage}, Languages...) {
			tokenizer := Tokenizer{Stems: &Stems{Language: language}}
			tokenizer.Add(Normalize(text))
			for _, token := range tokenizer.Tokens {
				if strings.ContainsAny(token.Text, "'\\ \x00:") {
					t.Fatalf("%q is written into a tsvector without escapes", token.Text)
				}
			}
			for _, form := range Forms(text, []Language{language}) {
				if form.Text == "" || strings.ContainsAny(form.Text, "'\\ \x00:") {
					t.Fatalf("%q is written into a tsquery without escapes", form.Text)
				}
			}
		}
	})
}
