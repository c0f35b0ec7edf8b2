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

func labelledPairs(t testing.TB, file string) (pairs []pair) {
	t.Helper()
	list, err := os.ReadFile("testdata/" + file)
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

// differsInNumber reports whether a quantity, date or unit of the sentence is not in the excerpt. It must never be accepted.
func (p *pair) differsInNumber() bool {
	for _, kind := range []string{"number", "scale", "unit", "percent", "month", "date", "decimal", "sign", "version", "several", "extra", "milliarde", "lakh"} {
		if !p.supported && strings.Contains(p.kind, kind) {
			return true
		}
	}
	return false
}

// TestSupportRates measures the check with the pairs for which the thresholds were chosen, and with others that were written later.
func TestSupportRates(t *testing.T) {
	for _, c := range []struct {
		file           string
		pairs, numbers int
		least          float64 // the rate of right decisions, in percent
	}{{"pairs.txt", 150, 40, 95}, {"unseen.txt", 40, 10, 85}} {
		pairs := labelledPairs(t, c.file)
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
		rate := 100 * float64(right) / float64(len(pairs))
		t.Logf("%s: %d of %d pairs are decided right (%.1f %%); none of %d with another number was accepted", c.file, right, len(pairs), rate, numbers)
		if len(pairs) < c.pairs || numbers < c.numbers || rate < c.least {
			t.Errorf("%s: %d of %d pairs are decided right, want at least %.0f %% of %d", c.file, right, len(pairs), c.least, c.pairs)
		}
	}
}
