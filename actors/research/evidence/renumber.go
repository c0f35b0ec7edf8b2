package evidence

import (
	"slices"
	"strconv"
	"strings"
)

// Renumber gives the citations of a checked report consecutive numbers from 1, by their first appearance. order has the old
// numbers that earlier sections have used: order[0] is the source that is now 1. The result has them and the new ones.
func Renumber(text string, order []int) (string, []int) {
	order = slices.Clone(order)
	numbers := map[int]int{}
	for i, old := range order {
		numbers[old] = i + 1
	}
	d := parseDocument(text)
	var edits []edit
	for _, s := range d.sentences {
		for _, c := range s.citations {
			var b strings.Builder
			for _, old := range c.numbers {
				if numbers[old] == 0 {
					order = append(order, old)
					numbers[old] = len(order)
				}
				b.WriteString("[" + strconv.Itoa(numbers[old]) + "]")
			}
			edits = append(edits, edit{c.Span, b.String()})
		}
	}
	return applied(text, edits), order
}
