package evidence

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextsAreCutIntoSentences(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"English":       {"Dr. Smith met J. R. Brown at 3.14 p.m. in St. Louis. It cost $1.5 million, e.g. for tests! Why? Because.", []string{"Dr. Smith met J. R. Brown at 3.14 p.m. in St. Louis.", "It cost $1.5 million, e.g. for tests!", "Why?", "Because."}},
		"ends":          {"It sells apples, pears, etc. The shop of Acme Inc. opened in the U.S. in 1990. No. It closed at 5 p.m. Nobody came.", []string{"It sells apples, pears, etc.", "The shop of Acme Inc. opened in the U.S. in 1990.", "No.", "It closed at 5 p.m.", "Nobody came."}},
		"plan B":        {"They chose plan B. The others left. See no. 5 for more.", []string{"They chose plan B.", "The others left.", "See no. 5 for more."}},
		"German":        {"Am 3. Oktober 1990 kamen ca. 1.000 Menschen, z. B. Dr. Meier. Im 19. Jahrhundert, d.h. vor 1900, gab es das nicht. Das war 1990. Danach war Ruhe.", []string{"Am 3. Oktober 1990 kamen ca. 1.000 Menschen, z. B. Dr. Meier.", "Im 19. Jahrhundert, d.h. vor 1900, gab es das nicht.", "Das war 1990.", "Danach war Ruhe."}},
		"French":        {"M. Dupont a dit « C’est vrai. » Le prix est de 3,5 M€, p. ex. en mai. Fini ?", []string{"M. Dupont a dit « C’est vrai. »", "Le prix est de 3,5 M€, p. ex. en mai.", "Fini ?"}},
		"Spanish":       {"El Sr. García vive en EE. UU. desde 1990. ¿Por qué? ¡No se sabe! La Dra. Ruiz no lo dijo.", []string{"El Sr. García vive en EE. UU. desde 1990.", "¿Por qué?", "¡No se sabe!", "La Dra. Ruiz no lo dijo."}},
		"Russian":       {"В 1990 г. население составляло 5 млн. человек, т.е. больше. А. С. Пушкин родился в Москве. Это факт.", []string{"В 1990 г. население составляло 5 млн. человек, т.е. больше.", "А. С. Пушкин родился в Москве.", "Это факт."}},
		"Arabic":        {"بلغ عدد السكان 10.5 مليون. هل هذا صحيح؟ نعم، هذا صحيح.", []string{"بلغ عدد السكان 10.5 مليون.", "هل هذا صحيح؟", "نعم، هذا صحيح."}},
		"Hindi":         {"दिल्ली भारत की राजधानी है। इसकी जनसंख्या 2 करोड़ है। क्यों?", []string{"दिल्ली भारत की राजधानी है।", "इसकी जनसंख्या 2 करोड़ है।", "क्यों?"}},
		"Chinese":       {"北京是首都。人口约2180.5万人！为什么？“很好。”他说。", []string{"北京是首都。", "人口约2180.5万人！", "为什么？", "“很好。”", "他说。"}},
		"Japanese":      {"東京は首都である。人口は1400万人だ。「そうです。」", []string{"東京は首都である。", "人口は1400万人だ。", "「そうです。」"}},
		"Korean":        {"서울은 수도이다. 인구는 940만 명이다.", []string{"서울은 수도이다.", "인구는 940만 명이다."}},
		"citations":     {"One fact.[1] Two facts. [2][3] Three facts.【4】 Four facts.[^5]\nFive facts. [6] says more. Six.¹ Seven facts [7].", []string{"One fact.[1]", "Two facts. [2][3]", "Three facts.【4】", "Four facts.[^5]", "Five facts.", "[6] says more.", "Six.¹", "Seven facts [7]."}},
		"Chinese cited": {"北京是首都。[1]人口很多[2]。", []string{"北京是首都。[1]", "人口很多[2]。"}},
		"markup":        {"**Bold sentence.** See [the page. It](https://example.com/a.b) for `code. More` now. Visit https://example.com/x.y. It works.", []string{"**Bold sentence.**", "See [the page. It](https://example.com/a.b) for `code. More` now.", "Visit https://example.com/x.y.", "It works."}},
		"lines":         {"A sentence\nof two lines. Another\none.\n\nA paragraph without a stop\n\nLast.", []string{"A sentence\nof two lines.", "Another\none.", "A paragraph without a stop", "Last."}},
		"lists":         {"- First item\n- Second item. It has two.\n  1. Nested item\n* [x] Done item\n\n1) Numbered item\n2) Next item", []string{"First item", "Second item.", "It has two.", "Nested item", "Done item", "Numbered item", "Next item"}},
		"wrapped year":  {"It opened in\n1990. It closed later.", []string{"It opened in\n1990.", "It closed later."}},
		"table":         {"| City | People |\n|---|---:|\n| Berlin | 3.7 million [1] |\n| Paris | 2.1 million |\n\nAfter.", []string{"Berlin | 3.7 million [1]", "Paris | 2.1 million", "After."}},
		"quote":         {"> A quoted sentence. Another\n> one.\n", []string{"A quoted sentence.", "Another\n> one."}},
		"no sentences":  {"# Heading one.\n\nTitle\n=====\n\n```go\nx := a[1]. Not a sentence.\n```\n\n    indented code. Not one.\n\n[link]: https://example.com\n\n---\n\n<!-- comment. here. -->\n", nil},
		"ellipsis":      {"He waited... and waited… then left. Wait... Then he left.", []string{"He waited... and waited… then left.", "Wait...", "Then he left."}},
		"quoted end":    {"She said “It works.” Then she left. “Why?” he asked.", []string{"She said “It works.”", "Then she left.", "“Why?” he asked."}},
		"version":       {"Version 1.2.3 of example.com is out. See ch. 3 and Fig. 4.", []string{"Version 1.2.3 of example.com is out.", "See ch. 3 and Fig. 4."}},
	} {
		var got []string
		for _, s := range Sentences(c.text) {
			got = append(got, c.text[s.Start:s.End])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, c.want)
		}
	}
}

func TestFactualSentencesAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		"The bridge is 330 m long.":                                             true,
		"Photosynthesis converts light into chemical energy.":                   true,
		"Berlin has 3.7 million people":                                         true,
		"However, the trial of 2019 found no benefit.":                          true,
		"In summary, Norway sells the most electric cars in Europe per person.": true,
		"Is this true?":                               false,
		"The main causes are:":                        false,
		"This report compares three databases.":       false,
		"In this section we look at the costs.":       false,
		"However, there is more to it.":               false,
		"Let us now turn to the costs.":               false,
		"See also":                                    false,
		"Berlin":                                      false,
		"Die Brücke wurde 1937 eröffnet.":             true,
		"Dieser Bericht vergleicht drei Datenbanken.": false,
		"Zusammenfassend ist die Lage schwierig.":     false,
		"Stimmt das?":                                 false,
		"La tour mesure 330 mètres.":                  true,
		"Ce rapport compare trois bases de données.":  false,
		"Passons maintenant aux coûts.":               false,
		"El canal se inauguró en 1914.":               true,
		"Este informe compara tres bases de datos.":   false,
		"¿Es cierto?":                                 false,
		"Население города растет с каждым годом.": true,
		"Этот отчёт сравнивает три базы данных.":  false,
		"Это правда?":                              false,
		"بلغ عدد السكان 10 ملايين نسمة.":           true,
		"يقارن هذا التقرير بين ثلاث قواعد بيانات.": false,
		"هل هذا صحيح؟":                             false,
		"दिल्ली भारत की राजधानी है।":               true,
		"यह रिपोर्ट तीन डेटाबेस की तुलना करती है।": false,
		"北京市人口约为2180万人。":                           true,
		"本报告比较三种数据库。":                              false,
		"这是真的吗？":                                   false,
		"東京都の人口は1400万人である。":                        true,
		"このレポートでは三つのデータベースを比較する。":                  false,
		"まとめると状況は難しい。":                             false,
		"서울의 인구는 940만 명이다.":                        true,
		"이 보고서는 데이터베이스를 비교한다.":                     false,
	} {
		all := Sentences(text)
		if len(all) == 0 && !want {
			continue
		}
		if len(all) != 1 || all[0].Factual != want {
			t.Errorf("%q: %+v, want factual %t", text, all, want)
		}
	}
}

func TestNoEntryIsInTwoLists(t *testing.T) {
	for name, lists := range map[string]map[string]string{"units": unitLists, "numbers": numberLists, "months": monthLists} {
		seen := map[string]string{}
		for of, list := range lists {
			for entry := range foldedSet(list) {
				if other, known := seen[entry]; known {
					t.Errorf("%s: %q is %q and %q", name, entry, of, other)
				}
				seen[entry] = of
			}
		}
	}
	seen := map[string]int{}
	for power, list := range scaleLists {
		for entry := range foldedSet(list) {
			if other, known := seen[entry]; known {
				t.Errorf("%q is %d and %d", entry, power, other)
			}
			seen[entry] = power
		}
	}
}

// hostile are texts of which a careless scanner reads parts again and again.
func hostile(size int) map[string]string {
	texts := map[string]string{}
	for _, piece := range []string{"[", "]", "[[", "](", "](a", "[1", "[1][2]", "【", "。", ".", ". ", "...", ".)", "`", "``` ", "`` ` ", "<", "<a", "> ", "- ", "* + ", "* ", "|", "a|\n", "|-|\n", "\\[", "\\", "!", "A. ", "1.", "1 ", "1,", "1.000.", "http://", "¹", "a¹", "<sup>1</sup>", "[^", "[1]: ", "[1](", "\n", "\n\n", "-\n", "a\n---\n", "~~~\n", "$", "（", "“", "a.[1] ", "[1] ", "[[1]2]", "[1-999]", "é", "́", "ا", "の", "潮", "1億", "千"} {
		texts[piece] = strings.Repeat(piece, size/len(piece))
	}
	texts["backticks"] = func() string {
		var b strings.Builder
		for n := 1; b.Len() < size; n++ {
			b.WriteString(strings.Repeat("`", n) + " ")
		}
		return b.String()
	}()
	return texts
}

func TestParsingTakesLinearTime(t *testing.T) {
	for name, text := range hostile(1 << 18) {
		if d := parseDocument(text); d.work > 4*len(text)+100 {
			t.Errorf("%q: %d steps for %d bytes", name, d.work, len(text))
		}
	}
}

func FuzzSentences(f *testing.F) {
	f.Add("A fact [1]. - Item\n| a | b |\n|---|---|\n| c | d |\n```\ncode\n```\n> q [x](y)")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, s := range Sentences(text) {
			if s.Start < end || s.End <= s.Start || s.End > len(text) {
				t.Fatalf("a sentence from %d to %d after %d", s.Start, s.End, end)
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[s.Start:s.End]) {
				t.Fatalf("a sentence cuts a character")
			}
			end = s.End
		}
	})
}
