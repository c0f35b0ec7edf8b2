package bench

import (
	"strings"
	"testing"

	"turnstone/cmd/loadtest/figures"
)

func TestACostThatHasGrownIsAnError(t *testing.T) {
	base, head := costs{}, costs{}
	for _, name := range comparedCosts {
		base[name], head[name] = figures.Samples{10, 9, 11, 10}, figures.Samples{11, 12, 11, 10}
	}
	if table, err := compareCosts(base, head, leastCompared); err != nil || strings.Contains(table.Markdown(), "not met") {
		t.Errorf("%v\n%s", err, table.Markdown())
	}
	head[startCost] = figures.Samples{12, 12, 11, 14}
	head[memoryCost] = figures.Samples{5, 5, 5}
	_, err := compareCosts(base, head, leastCompared)
	if err == nil || err.Error() != startCost+": 1.20 times the base, must be at most 1.15 times\n"+memoryCost+": only 3 of 4 rounds count" {
		t.Errorf("the error is %v", err)
	}
	base[sizeCost] = nil
	if _, err := compareCosts(base, head, 0); err == nil || !strings.Contains(err.Error(), sizeCost) {
		t.Errorf("a cost that was not measured: %v", err)
	}
}
