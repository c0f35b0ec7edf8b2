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

// Max returns the largest sample. It is NaN if there are none.
func (s Samples) Max() float64 { return s.Quantile(1) }

// Quantile returns the smallest sample that is not exceeded by a share q of the samples. It is NaN if there are none.
func (s Samples) Quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(max(int(math.Ceil(q*float64(len(s))))-1, 0), len(s)-1)]
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
