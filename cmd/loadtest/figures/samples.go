package figures

import (
	"math"
	"slices"
)

// Samples are the results of the rounds of a measurement.
type Samples []float64

// Median returns the middle sample, or the mean of the two middle samples. It is NaN if there are none.
func (s Samples) Median() float64 {
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

func (s Samples) min() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Min(s)
}

func (s Samples) max() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Max(s)
}

// DividedBy divides each sample by the baseline of the same round.
func (s Samples) DividedBy(baseline Samples) Samples {
	ratios := make(Samples, 0, len(s))
	for i := range s {
		if i < len(baseline) && baseline[i] != 0 {
			ratios = append(ratios, s[i]/baseline[i])
		}
	}
	return ratios
}

// Minus subtracts the baseline of the same round from each sample.
func (s Samples) Minus(baseline Samples) Samples {
	left := make(Samples, 0, len(s))
	for i := range s {
		if i < len(baseline) {
			left = append(left, s[i]-baseline[i])
		}
	}
	return left
}
