package tool

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"turnstone/actors/toolbox"
)

func TestCalculateIsExact(t *testing.T) {
	for expression, want := range map[string]string{
		"1+2":                            "3",
		"12*7":                           "84",
		"0.1+0.2":                        "0.3",
		"-2^2":                           "-4",
		"2^3^2":                          "512",
		"(1 + 2) * -3":                   "-9",
		"7 % 4":                          "3",
		"1/8":                            "0.125",
		"1/3":                            "0.333333333333333",
		"2^-2":                           "0.25",
		"010":                            "10",
		"99999999999999999999 + 1":       "100000000000000000000",
		"2^1000 / 2^998":                 "4",
		"(10^600 + 1) % 10":              "1",
		"9^999 * 9^999 / 9^1000 / 9^996": "81",
		"1/9^999":                        "0",
		"010.50":                         "10.5",
	} {
		input, _ := json.Marshal(map[string]string{"expression": expression})
		got, err := Calculate{}.Run(t.Context(), &toolbox.Call{Input: input})
		if err != nil || got.Output != want {
			t.Errorf("%s = %q, %v; want %q", expression, got.Output, err, want)
		}
	}
}

func TestCalculateRefusesWhatItCannotDo(t *testing.T) {
	for _, expression := range []string{
		"", " ", "1/0", "1%0", "2^0.5", "9^9^9", "(1", "1)", "1 2", "abc", "1..2", "1.2.3", "0^-1",
		strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), strings.Repeat("1+", 300) + "1", strings.Repeat("-", 200) + "1",
	} {
		input, _ := json.Marshal(map[string]string{"expression": expression})
		_, err := Calculate{}.Run(t.Context(), &toolbox.Call{Input: input})
		var failure *toolbox.Failure
		if !errors.As(err, &failure) {
			t.Errorf("%q: %v, want a toolbox.Failure", expression, err)
		}
	}
}

// largeExpressions are short inputs whose values, or steps to them, would be huge.
func largeExpressions() map[string]string {
	return map[string]string{
		"powers of powers":    "((9^999)^999)^99",
		"powers of roots":     "((1/9^999)^999)^99",
		"products of powers":  strings.Repeat("9^999*", 83) + "1",
		"fractions of powers": strings.Repeat("(1/7^999)+", 45) + "1",
		"sums of fractions":   strings.Repeat("1/99999999999999999999999999+", 17) + "1",
		"powers of digits":    strings.Repeat("9", 450) + "^1000^1",
		"nested powers":       strings.Repeat("(", 45) + "9" + strings.Repeat("^9)", 45),
		"nested negatives":    strings.Repeat("(", 45) + "9" + strings.Repeat("^-9)", 45),
	}
}

func TestCalculateHasBoundedMemory(t *testing.T) {
	const most = 64 << 20 // allocated in all, of which little is in use at a time
	for name, expression := range largeExpressions() {
		input, _ := json.Marshal(map[string]string{"expression": expression})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Calculate{}.Run(t.Context(), &toolbox.Call{Input: input})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most || len(got.Output) > maxBits {
			t.Errorf("%s: %d bytes were allocated, and the result has %d (%v)", name, used, len(got.Output), err)
		}
	}
}

// canceledAfter is a context that ends when it was asked a number of times.
type canceledAfter struct {
	context.Context // it is one
	left            int
}

func (c *canceledAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCalculateStopsWithItsContext(t *testing.T) {
	input, _ := json.Marshal(map[string]string{"expression": strings.Repeat("9^99+", 80) + "1"})
	for _, steps := range []int{0, 1, 10, 500} {
		ctx := &canceledAfter{t.Context(), steps}
		if got, err := (Calculate{}).Run(ctx, &toolbox.Call{Input: input}); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d steps: %q, %v", steps, got.Output, err)
		}
		if ctx.left != -1 {
			t.Errorf("after %d steps: %d further ones", steps, -1-ctx.left)
		}
	}
}

func TestCurrentTimeKnowsZones(t *testing.T) {
	got, err := CurrentTime{}.Run(t.Context(), &toolbox.Call{Input: json.RawMessage(`{"time_zone":"Asia/Tokyo"}`)})
	if err != nil || !strings.Contains(got.Output, "JST") {
		t.Errorf("got %q, %v", got.Output, err)
	}
	for _, zone := range []string{"Nowhere/Else", "Local", "../etc/passwd"} {
		input, _ := json.Marshal(map[string]string{"time_zone": zone})
		if _, err := (CurrentTime{}).Run(t.Context(), &toolbox.Call{Input: input}); err == nil {
			t.Errorf("zone %q was accepted", zone)
		}
	}
}
