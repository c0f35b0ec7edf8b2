package sitetest

import "testing"

func TestNoTwoTestsGetTheSameAddress(t *testing.T) {
	const many = 800 // without locks, about twenty pairs of random ports would be equal
	seen := map[string]bool{}
	for range many {
		address := FreeAddress(t)
		if seen[address] {
			t.Fatalf("%s was returned twice", address)
		}
		seen[address] = true
	}
}
