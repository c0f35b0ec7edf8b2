package evidence

import (
	"fmt"
	"strings"
	"testing"
)

func TestContradictionsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want ContradictionKind
	}{
		"numbers":         {"The Gotthard Base Tunnel has a length of 57 km.", "The length of the Gotthard Base Tunnel is 59 kilometres.", DifferentNumbers},
		"the same":        {"The Gotthard Base Tunnel has a length of 57 km.", "The length of the Gotthard Base Tunnel is 57 kilometres.", ""},
		"dates":           {"The Gotthard Base Tunnel opened for traffic in 2016.", "The Gotthard Base Tunnel opened for traffic in 2017.", DifferentDates},
		"months":          {"The Gotthard Base Tunnel opened for traffic in June 2016.", "The Gotthard Base Tunnel opened for traffic in December 2016.", DifferentDates},
		"other times":     {"In 2019 the company Siemens had revenue of 86 billion euros.", "In 2020 the company Siemens had revenue of 57 billion euros.", ""},
		"same time":       {"In 2020 the company Siemens had revenue of 86 billion euros.", "In 2020 the company Siemens had revenue of 57 billion euros.", DifferentNumbers},
		"denial":          {"The vaccine prevents infection in healthy adults.", "The vaccine does not prevent infection in healthy adults.", Denial},
		"opposite":        {"Coral cover on the northern reef increased.", "Coral cover on the northern reef decreased.", Denial},
		"other subject":   {"The Rhine river in Germany is 1,230 km long.", "The Elbe river in Germany is 1,094 km long.", ""},
		"other units":     {"The bridge of the railway is 300 m long and opened early.", "The bridge of the railway cost 5 million euros and opened early.", ""},
		"nothing alike":   {"Whales are the largest animals.", "Green tea contains caffeine.", ""},
		"German":          {"Das Medikament senkt den Blutdruck bei den Patienten.", "Das Medikament senkt den Blutdruck bei den Patienten nicht.", Denial},
		"Chinese":         {"北京市常住人口为2180万人。", "北京市常住人口为2280万人。", DifferentNumbers},
		"other languages": {"The tunnel is 57 km long.", "Der Tunnel ist 59 km lang.", ""},
	} {
		got := Contradictions([]Excerpt{{1, "An unrelated sentence about the weather. " + c.a}, {2, c.b}})
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Kind != c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
		if same := Contradictions([]Excerpt{{1, c.a}, {1, c.b}}); len(same) > 0 {
			t.Errorf("%s: a source contradicts itself: %+v", name, same)
		}
	}
}

func TestContradictionsTakeBoundedWork(t *testing.T) {
	var excerpts []Excerpt
	for i := range 2000 {
		excerpts = append(excerpts, Excerpt{i, fmt.Sprintf("The river number %d of the region has a length of %d kilometres according to the survey.", i, i)})
	}
	claims := claimsOf(excerpts)
	compared := 0
	work := comparePairs(claims, func(_, _ *claim) { compared++ })
	if limit := 2000 * maxClaimPostings * 10; work > limit || compared > 2000*maxClaimPostings {
		t.Errorf("%d steps and %d pairs, want at most %d", work, compared, limit)
	}
	a, b := Contradictions(excerpts[:200]), Contradictions(excerpts[:200])
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("the result is not deterministic")
	}
}

func FuzzContradictions(f *testing.F) {
	f.Add("The river is 5 km long.", "The river is not 6 km long.")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, c := range Contradictions([]Excerpt{{1, a}, {2, b}}) {
			if strings.TrimSpace(a[c.SentenceA.Start:c.SentenceA.End]) == "" || c.B != 1 || b[c.SentenceB.Start:c.SentenceB.End] == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}
