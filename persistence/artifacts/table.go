package artifacts

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A table is stored as CSV as in RFC 4180, with line feeds. Every cell is text: a spreadsheet calculates nothing when it opens a
// download (see GuardedTable), and the app shows a formula as it is written.

// maxColumns limits the columns of a table.
const maxColumns = 1000

// formulaMarks are the characters with which a spreadsheet begins a formula. Some programs take the full-width and the small
// forms for the ASCII characters.
const formulaMarks = "=+-@＝＋－＠﹦﹢﹣﹫"

// parseTable returns a table in the form in which it is stored. An apostrophe before a formula, with which spreadsheets and
// GuardedTable mark text, is not part of the cell. The error is for the author.
func parseTable(content string) (string, error) {
	content = strings.TrimPrefix(content, "\ufeff")
	return rewrite(content, false, func(cell string) string {
		if rest, marked := strings.CutPrefix(cell, "'"); marked && isFormula(rest) {
			return rest
		}
		return cell
	})
}

// GuardedTable returns a stored table as a download: as in RFC 4180, with an apostrophe before each cell that a spreadsheet
// would take for a formula. Numbers stay as they are.
func GuardedTable(content string) (string, error) {
	return rewrite(content, true, func(cell string) string {
		if isFormula(cell) {
			return "'" + cell
		}
		return cell
	})
}

func rewrite(content string, crlf bool, change func(cell string) string) (string, error) {
	from := csv.NewReader(strings.NewReader(content))
	from.ReuseRecord = true
	var out strings.Builder
	end := "\n"
	if crlf {
		end = "\r\n"
	}
	for {
		row, err := from.Read()
		switch {
		case errors.Is(err, io.EOF):
			return out.String(), nil
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := from.FieldPos(0)
			return "", fmt.Errorf("is not a table: the row in line %d has another number of cells than the first row, which has %d", line, from.FieldsPerRecord)
		case err != nil:
			return "", fmt.Errorf("is not CSV as in RFC 4180: %w", err)
		case len(row) > maxColumns:
			return "", fmt.Errorf("has %d columns; a table has at most %d", len(row), maxColumns)
		}
		for i := range row {
			row[i] = change(row[i])
		}
		writeRow(&out, row)
		out.WriteString(end)
	}
}

// quotedMarks are the characters that make quotes necessary. A carriage return is one: the writer of package csv removes it from
// a cell if rows end with CRLF.
const quotedMarks = ",\"\r\n"

// writeRow writes a row without its end. A row that is one empty cell is written with quotes: no reader takes an empty line for a
// row.
func writeRow(out *strings.Builder, row []string) {
	for i, cell := range row {
		if i > 0 {
			out.WriteByte(',')
		}
		first, _ := utf8.DecodeRuneInString(cell)
		if !strings.ContainsAny(cell, quotedMarks) && !unicode.IsSpace(first) && !(cell == "" && len(row) == 1) {
			out.WriteString(cell)
			continue
		}
		out.WriteString(`"` + strings.ReplaceAll(cell, `"`, `""`) + `"`)
	}
}

// isFormula reports whether a spreadsheet takes a cell for a formula, or for one behind space and invisible characters, which
// some programs remove. A number with a sign is none.
func isFormula(cell string) bool {
	text := strings.TrimLeftFunc(cell, func(c rune) bool { return unicode.IsSpace(c) || unicode.In(c, unicode.Z, unicode.C) })
	first, _ := utf8.DecodeRuneInString(text)
	if strings.HasPrefix(cell, "\t") || strings.HasPrefix(cell, "\r") {
		return true
	}
	return text != "" && strings.ContainsRune(formulaMarks, first) && !isNumber(text)
}

// isNumber reports whether a cell is a sign and digits, with at most one decimal mark and a percent sign at its end.
func isNumber(cell string) bool {
	digits := strings.TrimSuffix(strings.TrimLeft(cell, "+-"), "%")
	if len(cell)-len(strings.TrimLeft(cell, "+-")) > 1 || digits == "" {
		return false
	}
	marks := 0
	for _, c := range digits {
		switch {
		case c == '.' || c == ',':
			marks++
		case c < '0' || c > '9':
			return false
		}
	}
	return marks < len(digits) && marks <= 1
}
