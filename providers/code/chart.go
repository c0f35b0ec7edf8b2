package code

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// chart is what code asks plot for.
type chart struct {
	Type, Title    string
	XLabel, YLabel string
	X              []any      // numbers or texts; empty: 1, 2, 3 …
	Y              []*float64 // of one series; null: there is no value
	Series         []series

	bars    bool
	names   []string // of the positions on the axis x: 0, 1, 2 …; nil: x has numbers
	bottom  float64
	top     float64
	left    float64
	right   float64
	visible int // points that are drawn
}

// series is one line, or one group of bars or points.
type series struct {
	Name string
	X    []any
	Y    []*float64

	at []float64 // the position of each value on the axis x
}

// readChart reads the description of a chart. It returns what is wrong, for the code; empty: nothing.
func readChart(encoded string) (c *chart, wrong string) {
	const usage = "plot({type, x, y or series, title, xLabel, yLabel}): "
	c = &chart{}
	if err := json.Unmarshal([]byte(encoded), c); err != nil {
		return nil, usage + "x has numbers or texts, y has numbers, and series has objects {name, x, y}."
	}
	if c.Type == "" {
		c.Type = "line"
	}
	if !slices.Contains([]string{"line", "bar", "scatter"}, c.Type) {
		return nil, usage + "the type is 'line', 'bar' or 'scatter'."
	}
	if len(c.Y) > 0 {
		c.Series = append([]series{{X: c.X, Y: c.Y}}, c.Series...)
	}
	points := 0
	for i := range c.Series {
		one := &c.Series[i]
		if len(one.X) == 0 {
			one.X = c.X
		}
		if len(one.X) > 0 && len(one.X) != len(one.Y) {
			return nil, usage + fmt.Sprintf("x has %d values and y has %d.", len(one.X), len(one.Y))
		}
		points += len(one.Y)
	}
	switch {
	case points == 0:
		return nil, usage + "there are no values."
	case points > maxPoints:
		return nil, usage + fmt.Sprintf("a chart has at most %d values, and this one has %d.", maxPoints, points)
	case len(c.Series) > maxSeries:
		return nil, usage + fmt.Sprintf("a chart has at most %d series, and this one has %d.", maxSeries, len(c.Series))
	}
	c.bars = c.Type == "bar"
	c.place()
	if c.visible == 0 {
		return nil, usage + "there are no values that are numbers."
	}
	return c, ""
}

// place finds the positions of the values and the ranges of the axes.
func (c *chart) place() {
	if c.bars || !c.numeric() {
		c.name()
	}
	first := true
	for i := range c.Series {
		for j, y := range c.Series[i].Y {
			x := c.position(&c.Series[i], j)
			c.Series[i].at = append(c.Series[i].at, x)
			if y == nil {
				continue
			}
			if first {
				c.left, c.right, c.bottom, c.top, first = x, x, *y, *y, false
			}
			c.left, c.right, c.bottom, c.top = min(c.left, x), max(c.right, x), min(c.bottom, *y), max(c.top, *y)
			c.visible++
		}
	}
	if c.names != nil {
		c.left, c.right = -0.5, float64(len(c.names))-0.5
	}
	if c.bars {
		c.bottom, c.top = min(c.bottom, 0), max(c.top, 0)
	}
	c.left, c.right = widen(c.left, c.right)
	c.bottom, c.top = widen(c.bottom, c.top)
}

// widen returns a range that is not empty, as far as the precision of numbers allows to draw it.
func widen(low, high float64) (wideLow, wideHigh float64) {
	const precision, least = 1e-12, 1e-300
	if high/2-low/2 > max(least, high*precision, -low*precision) {
		return low, high
	}
	by := max(1, max(low, -low)/10)
	return low - by, high + by
}

// numeric reports whether all positions on the axis x are numbers.
func (c *chart) numeric() bool {
	for _, one := range c.Series {
		for _, x := range one.X {
			if _, is := x.(float64); !is {
				return false
			}
		}
	}
	return true
}

// name gives each different position on the axis x a place, in the order in which they occur.
func (c *chart) name() {
	c.names = []string{}
	known := map[string]bool{}
	for i := range c.Series {
		for j := range c.Series[i].Y {
			if name := nameAt(&c.Series[i], j); !known[name] {
				known[name], c.names = true, append(c.names, name)
			}
		}
	}
	places := make(map[string]float64, len(c.names))
	for i, name := range c.names {
		places[name] = float64(i)
	}
	for i := range c.Series {
		one := &c.Series[i]
		x := make([]any, len(one.Y))
		for j := range one.Y {
			x[j] = places[nameAt(one, j)]
		}
		one.X = x
	}
}

func nameAt(of *series, i int) string {
	if i >= len(of.X) {
		return strconv.Itoa(i + 1)
	}
	switch x := of.X[i].(type) {
	case string:
		return x
	case float64:
		return number(x)
	case nil:
		return ""
	default:
		return fmt.Sprint(x)
	}
}

// position returns the position of a value on the axis x.
func (c *chart) position(of *series, i int) float64 {
	if i < len(of.X) {
		x, _ := of.X[i].(float64)
		return x
	}
	return float64(i + 1)
}

// number returns a short text of a number.
func number(value float64) string {
	if value != 0 && (value >= 1e9 || value <= -1e9 || value < 1e-4 && value > -1e-4) {
		return strconv.FormatFloat(value, 'g', 4, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 10, 64), 64)
	if err != nil {
		rounded = value
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
