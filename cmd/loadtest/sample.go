package main

import (
	"math"
	"slices"
)

// samples are what the rounds of a measurement gave.
type samples []float64

// median is the middle one, or the mean of the two in the middle.
func (s samples) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func (s samples) least() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Min(s)
}

func (s samples) most() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Max(s)
}

// by divides round by round: each was measured beside its own baseline.
func (s samples) by(baseline samples) samples {
	ratios := make(samples, 0, len(s))
	for i := range s {
		if i < len(baseline) && baseline[i] != 0 {
			ratios = append(ratios, s[i]/baseline[i])
		}
	}
	return ratios
}

// minus subtracts round by round.
func (s samples) minus(baseline samples) samples {
	left := make(samples, 0, len(s))
	for i := range s {
		if i < len(baseline) {
			left = append(left, s[i]-baseline[i])
		}
	}
	return left
}
