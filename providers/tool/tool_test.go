package tool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"turnstone/actors/tools"
)

func TestCalculateIsExact(t *testing.T) {
	for expression, want := range map[string]string{
		"1+2":                      "3",
		"12*7":                     "84",
		"0.1+0.2":                  "0.3",
		"-2^2":                     "-4",
		"2^3^2":                    "512",
		"(1 + 2) * -3":             "-9",
		"7 % 4":                    "3",
		"1/8":                      "0.125",
		"1/3":                      "0.333333333333333",
		"2^-2":                     "0.25",
		"010":                      "10",
		"99999999999999999999 + 1": "100000000000000000000",
	} {
		input, _ := json.Marshal(map[string]string{"expression": expression})
		got, err := Calculate{}.Run(t.Context(), &tools.Call{Input: input})
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
		_, err := Calculate{}.Run(t.Context(), &tools.Call{Input: input})
		var failure *tools.Failure
		if !errors.As(err, &failure) {
			t.Errorf("%q: %v, want a tools.Failure", expression, err)
		}
	}
}

func TestCurrentTimeKnowsZones(t *testing.T) {
	got, err := CurrentTime{}.Run(t.Context(), &tools.Call{Input: json.RawMessage(`{"time_zone":"Asia/Tokyo"}`)})
	if err != nil || !strings.Contains(got.Output, "JST") {
		t.Errorf("got %q, %v", got.Output, err)
	}
	for _, zone := range []string{"Nowhere/Else", "Local", "../etc/passwd"} {
		input, _ := json.Marshal(map[string]string{"time_zone": zone})
		if _, err := (CurrentTime{}).Run(t.Context(), &tools.Call{Input: input}); err == nil {
			t.Errorf("zone %q was accepted", zone)
		}
	}
}
