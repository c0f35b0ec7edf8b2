package code

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"

	"turnstone/protocol/clip"
)

// The drawing, in pixels.
const (
	width, height = 720.0, 440.0
	marginLeft    = 76.0
	marginRight   = 20.0
	marginTop     = 44.0
	marginBottom  = 62.0
	legendHeight  = 20.0
	legendWidth   = 124.0 // of one entry
	perRow        = 5     // entries
	maxTicks      = 8
	maxNames      = 24 // of the axis x; of more names, some are left out
	maxLabel      = 90 // characters of a title or a label of an axis
	maxName       = 14 // characters of a name in the legend or on the axis x
)

// colours of the series, which can be distinguished with any kind of colour vision (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d1f"}

// drawing is an SVG that is being written.
type drawing struct {
	*chart
	strings.Builder
	plotTop float64 // below the title and the legend
}

// draw returns the chart as an SVG without scripts, links and styles. Every text of the code is escaped.
func (c *chart) draw() string {
	d := &drawing{chart: c, plotTop: marginTop}
	if c.hasLegend() {
		d.plotTop += legendHeight * math.Ceil(float64(len(c.Series))/perRow)
	}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" font-family="sans-serif" font-size="12" fill="#222">`+"\n", width, height, width, height)
	fmt.Fprintf(d, "<title>%s</title>\n<rect width=\"%g\" height=\"%g\" fill=\"#fff\"/>\n", text(c.Title, maxLabel), width, height)
	d.label(width/2, 26, `text-anchor="middle" font-size="16" font-weight="600"`, c.Title, maxLabel)
	d.legend()
	d.axes()
	for i := range c.Series {
		switch c.Type {
		case "bar":
			d.drawBars(i)
		case "scatter":
			d.drawPoints(i, 3.5)
		default:
			d.drawLine(i)
		}
	}
	d.WriteString("</svg>\n")
	return d.String()
}

// text returns a text of the code, shortened and escaped.
func text(of string, most int) string {
	of = clip.Ellipsis(of, most)
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff { // they are not allowed in XML
			return ' '
		}
		return r
	}, strings.ToValidUTF8(of, "\ufffd")))
}

func (d *drawing) label(x, y float64, attributes, of string, most int) {
	if of != "" {
		fmt.Fprintf(d, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attributes, text(of, most))
	}
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

// x and y return where a value is drawn.
func (d *drawing) x(value float64) float64 {
	return marginLeft + share(value, d.left, d.right)*(width-marginLeft-marginRight)
}

func (d *drawing) y(value float64) float64 {
	return height - marginBottom - share(value, d.bottom, d.top)*(height-marginBottom-d.plotTop)
}

// share returns where a value is between two others, without an overflow of their difference.
func share(value, low, high float64) float64 {
	return (value/2 - low/2) / (high/2 - low/2)
}

func (c *chart) hasLegend() bool { return len(c.Series) > 1 || c.Series[0].Name != "" }

func (d *drawing) legend() {
	if !d.hasLegend() {
		return
	}
	for i := range d.Series {
		name := d.Series[i].Name
		if name == "" {
			name = fmt.Sprintf("Series %d", i+1)
		}
		x, y := marginLeft+float64(i%perRow)*legendWidth, marginTop+float64(i/perRow)*legendHeight
		fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="10" height="10" fill="%s"/>`+"\n", x, y-9, colour(i))
		d.label(x+15, y, "", name, maxName)
	}
}

func colour(series int) string { return colours[series%len(colours)] }

// axes draws the axes with their ticks and labels.
func (d *drawing) axes() {
	bottom := height - marginBottom
	for _, tick := range ticks(d.bottom, d.top) {
		d.line(marginLeft, d.y(tick), width-marginRight, d.y(tick), "#e3e3e3")
		d.label(marginLeft-8, d.y(tick)+4, `text-anchor="end"`, number(tick), maxName)
	}
	if d.names == nil {
		for _, tick := range ticks(d.left, d.right) {
			d.line(d.x(tick), bottom, d.x(tick), bottom+5, "#666")
			d.label(d.x(tick), bottom+19, `text-anchor="middle"`, number(tick), maxName)
		}
	}
	d.nameTicks(bottom)
	d.line(marginLeft, bottom, width-marginRight, bottom, "#666")
	d.line(marginLeft, d.plotTop, marginLeft, bottom, "#666")
	if d.bars && d.bottom < 0 {
		d.line(marginLeft, d.y(0), width-marginRight, d.y(0), "#666")
	}
	d.label((marginLeft+width-marginRight)/2, height-12, `text-anchor="middle"`, d.XLabel, maxLabel)
	middle := (d.plotTop + bottom) / 2
	d.label(18, middle, fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 18 %.1f)"`, middle), d.YLabel, maxLabel)
}

// nameTicks draws the names of the axis x; aslant if they are too long to stand side by side.
func (d *drawing) nameTicks(bottom float64) {
	const character = 7.5
	step, longest := (len(d.names)+maxNames-1)/maxNames, 0
	for _, name := range d.names {
		longest = max(longest, min(maxName, utf8.RuneCountInString(name)))
	}
	level := float64(min(len(d.names), maxNames)*(longest+1))*character < width-marginLeft-marginRight
	for i := 0; i < len(d.names); i += step {
		x := d.x(float64(i))
		if level {
			d.label(x, bottom+19, `text-anchor="middle"`, d.names[i], maxName)
			continue
		}
		d.label(x+4, bottom+14, fmt.Sprintf(`text-anchor="end" font-size="10" transform="rotate(-35 %.1f %.1f)"`, x+4, bottom+14), d.names[i], maxName-4)
	}
}

// ticks returns round numbers in a range, at most maxTicks.
func ticks(low, high float64) (values []float64) {
	rough := (high/2 - low/2) / (maxTicks - 1) * 2
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := power * 10
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= rough {
			step = factor * power
			break
		}
	}
	first := math.Ceil(low / step)
	for i := range maxTicks + 1 {
		value := (first + float64(i)) * step
		if value > high || math.IsInf(value, 0) || math.IsNaN(value) {
			break
		}
		values = append(values, value)
	}
	return values
}

// drawBars draws the bars of a series next to those of the others.
func (d *drawing) drawBars(of int) {
	place := (width - marginLeft - marginRight) / float64(len(d.names))
	bar := place * 0.8 / float64(len(d.Series))
	zero := d.y(0)
	for i, value := range d.Series[of].Y {
		if value == nil {
			continue
		}
		x, y := d.x(d.Series[of].at[i])-place*0.4+bar*float64(of), d.y(*value)
		fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.2f" height="%.1f" fill="%s"/>`+"\n", x, min(y, zero), bar, math.Abs(y-zero), colour(of))
	}
}

func (d *drawing) drawPoints(of int, radius float64) {
	for i, value := range d.Series[of].Y {
		if value != nil {
			fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"/>`+"\n", d.x(d.Series[of].at[i]), d.y(*value), radius, colour(of))
		}
	}
}

// drawLine draws a line with gaps where there is no value. A line with few values has points, too.
func (d *drawing) drawLine(of int) {
	const few = 40
	var path strings.Builder
	move := true
	for i, value := range d.Series[of].Y {
		if value == nil {
			move = true
			continue
		}
		command := 'L'
		if move {
			command = 'M'
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", command, d.x(d.Series[of].at[i]), d.y(*value))
		move = false
	}
	fmt.Fprintf(d, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"/>`+"\n", path.String(), colour(of))
	if len(d.Series[of].Y) <= few {
		d.drawPoints(of, 3)
	}
}
