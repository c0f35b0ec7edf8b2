package evidence

import (
	"os"
	"strings"
	"testing"
)

// pair is a labelled pair of testdata/pairs.txt.
type pair struct {
	supported               bool
	kind, sentence, excerpt string
}

func labelledPairs(t testing.TB) (pairs []pair) {
	t.Helper()
	list, err := os.ReadFile("testdata/pairs.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 4 || parts[0] != "yes" && parts[0] != "no" {
			t.Fatalf("not a pair: %s", line)
		}
		pairs = append(pairs, pair{parts[0] == "yes", parts[1], parts[2], parts[3]})
	}
	return pairs
}

// numberKinds are the kinds of pairs that must never be accepted: a quantity, date or unit of the sentence is not in the excerpt.
func (p *pair) differsInNumber() bool {
	for _, kind := range []string{"number", "scale", "unit", "percent", "month", "date", "decimal", "sign", "version", "several", "extra", "milliarde", "lakh"} {
		if !p.supported && strings.Contains(p.kind, kind) {
			return true
		}
	}
	return false
}

func TestSupportRates(t *testing.T) {
	pairs := labelledPairs(t)
	right, numbers := 0, 0
	for _, p := range pairs {
		got := statementOf(p.excerpt).supports(statementOf(p.sentence))
		if got == p.supported {
			right++
		} else {
			t.Logf("%s: supports is %t: %s | %s", p.kind, got, p.sentence, p.excerpt)
		}
		if p.differsInNumber() {
			if numbers++; got {
				t.Errorf("a sentence with another number was accepted: %s | %s", p.sentence, p.excerpt)
			}
		}
	}
	t.Logf("%d of %d pairs are decided right (%.1f %%); none of %d with another number was accepted", right, len(pairs), 100*float64(right)/float64(len(pairs)), numbers)
	if len(pairs) < 150 || numbers < 40 || 100*right < 95*len(pairs) {
		t.Errorf("%d of %d pairs are decided right, want at least 95 %% of 150", right, len(pairs))
	}
}
