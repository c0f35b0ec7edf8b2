package figures

import (
	"fmt"
	"strings"
)

// Table is rows of cells; the first row is the head.
type Table struct{ rows [][]string }

// NewTable returns a table with only its head.
func NewTable(head ...string) *Table { return &Table{rows: [][]string{head}} }

// Add adds a row.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case float64:
			row[i] = Number(v)
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	t.rows = append(t.rows, row)
}

// Last returns the newest row with its column names, for progress messages.
func (t *Table) Last() string {
	var parts []string
	for i, cell := range t.rows[len(t.rows)-1] {
		parts = append(parts, strings.TrimSpace(t.rows[0][i]+" "+cell))
	}
	return strings.Join(parts, ", ")
}

// Markdown returns the table for a document.
func (t *Table) Markdown() string {
	var out strings.Builder
	for i, row := range t.rows {
		out.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String()
}

// Aligned returns the table for a terminal, with columns of equal width.
func (t *Table) Aligned() string {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			out.WriteString(cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
		}
		out.WriteString("\n")
	}
	return out.String()
}
