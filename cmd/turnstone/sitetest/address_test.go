package sitetest

import "testing"

func TestNoTwoTestsGetTheSameAddress(t *testing.T) {
	const many = 800 // chosen by chance alone, some twenty pairs would be equal
	seen := map[string]bool{}
	for range many {
		address := FreeAddress(t)
		if seen[address] {
			t.Fatalf("%s is given twice", address)
		}
		seen[address] = true
	}
}
