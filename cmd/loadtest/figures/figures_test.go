package figures

import (
	"fmt"
	"math"
	"testing"
)

func TestMediansAndRatiosGoRoundByRound(t *testing.T) {
	ours, theirs := Samples{30, 10, 20}, Samples{10, 10, 40}
	if m := ours.Median(); m != 20 {
		t.Errorf("median %v", m)
	}
	if m := (Samples{1, 2, 3, 10}).Median(); m != 2.5 {
		t.Errorf("median of four %v", m)
	}
	if r := ours.DividedBy(theirs); fmt.Sprint(r) != "[3 1 0.5]" {
		t.Errorf("ratios %v", r)
	}
	if d := ours.Minus(theirs); fmt.Sprint(d) != "[20 0 -20]" {
		t.Errorf("differences %v", d)
	}
	if !math.IsNaN(Samples{}.Median()) {
		t.Error("the median of no samples is a number")
	}
}

func TestAQuantileIsASample(t *testing.T) {
	var hundred Samples
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.991: 100, 1: 100} {
		if got := hundred.Quantile(q); got != want {
			t.Errorf("the quantile %v is %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(Samples{}.Max()) {
		t.Error("the maximum of no samples is a number")
	}
}

func TestNumbersAreShort(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 5: "5", 1234567: "1,234,567", 123.4: "123", -1234.5: "-1,234", 12.34: "12.3", 1.234: "1.23", 0.0123: "0.012", math.NaN(): "–",
	} {
		if got := Number(value); got != want {
			t.Errorf("%v is shown as %s, want %s", value, got, want)
		}
	}
}
