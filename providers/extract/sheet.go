package extract

import (
	"errors"
	"strings"

	"github.com/xuri/excelize/v2"

	"turnstone/protocol"
)

// maxCells limits the cells of a row, so that an almost empty row does not fill the text with tabs. Spreadsheets may have
// 16,384 columns.
const maxCells = 1024

// isoDate is the format of dates that follow the country of the reader. The one of the library has two digits for the year.
const isoDate = "yyyy-mm-dd"

// readSheets reads an XLSX workbook: each row is a line with the shown values, separated by tabs. The comments and the text boxes of
// a sheet follow its rows. Sheets that are not shown are left out.
func readSheets(t *text, c content) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	// The limits are the same, so that no part is unpacked to a file.
	book, err := excelize.OpenReader(c.reader(), excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxUnpacked, ShortDatePattern: isoDate})
	if err != nil {
		return err
	}
	sheets := book.GetSheetList()
	if len(sheets) == 0 {
		return errDamaged // another kind of Office document
	}
	parts, err := sheetParts(a)
	if err != nil {
		return err
	}
	for i, sheet := range sheets {
		if err := t.begin(protocol.BlockSheet, sheet); err != nil {
			return err
		}
		if shown, err := book.GetSheetVisible(sheet); err == nil && !shown {
			t.note(protocol.NoteHidden, 1)
			continue
		}
		part := ""
		if i < len(parts) {
			part = parts[i]
		}
		without, err := cellsWithoutValue(a, part)
		if err != nil {
			return err
		}
		if err := readRows(t, book, sheet, without); err != nil {
			return err
		}
		if err := readRemarks(t, a, book, sheet, part); err != nil {
			return err
		}
	}
	return nil
}

// readRemarks reads the comments on the cells of a sheet, and its text boxes.
func readRemarks(t *text, a *archive, book *excelize.File, sheet, part string) error {
	comments, err := book.GetComments(sheet)
	if err != nil {
		t.note(protocol.NoteMissingParts, 1)
	}
	for i := range comments {
		written := comments[i].Text
		for _, run := range comments[i].Paragraph {
			written += run.Text
		}
		by := ""
		if comments[i].Author != "" {
			by = " by " + comments[i].Author
		}
		if err := t.joined("[Comment" + by + " on " + comments[i].Cell + "] " + written); err != nil {
			return err
		}
	}
	related, err := a.relations(part)
	if err != nil {
		return err
	}
	for _, name := range partsOf(related, "drawing") {
		if err := readAside(t, a, name); err != nil {
			return err
		}
	}
	return nil
}

// sheetParts returns the names of the sheets in the archive, in their order.
func sheetParts(a *archive) (names []string, err error) {
	main, err := a.mainPart()
	if err != nil {
		return nil, err
	}
	parts, err := a.relations(main)
	if err != nil {
		return nil, err
	}
	return names, a.walk(main, func(n node) error {
		if n.opens("sheet") {
			names = append(names, parts[n.attrOf("/relationships", "id")].target)
		}
		return nil
	})
}

// cellsWithoutValue returns the columns of the cells of each row that have a formula, and no value: the program that wrote the
// workbook has not calculated it.
func cellsWithoutValue(a *archive, part string) (map[int][]int, error) {
	found := map[int][]int{}
	if !a.has(part) {
		return found, nil // a sheet with only a chart
	}
	cell, hasFormula, hasValue, count := "", false, false, 0
	return found, a.walk(part, func(n node) error {
		switch {
		case n.opens("c"):
			cell, hasFormula, hasValue = n.attr("r"), false, false
		case n.opens("f"):
			hasFormula = true
		case n.opens("v"), n.opens("is"):
			hasValue = true
		case n.end == "c" && hasFormula && !hasValue && count < maxFormulas:
			if column, row, err := excelize.CellNameToCoordinates(cell); err == nil && column <= maxCells {
				found[row], count = append(found[row], column), count+1
			}
		}
		return nil
	})
}

// maxFormulas limits the formulas that are shown for their values.
const maxFormulas = 10_000

// withFormulas returns a row with its formulas in place of the values that are not stored.
func withFormulas(t *text, book *excelize.File, sheet string, row int, cells []string, columns []int) ([]string, error) {
	for _, column := range columns {
		name, err := excelize.CoordinatesToCellName(column, row)
		if err != nil {
			return nil, err
		}
		formula, err := book.GetCellFormula(sheet, name)
		if err != nil || formula == "" {
			formula = "?"
		}
		for len(cells) < column {
			cells = append(cells, "")
		}
		if cells[column-1] == "" {
			cells[column-1] = "=" + strings.TrimPrefix(formula, "=")
			t.note(protocol.NoteNoValues, 1)
		}
	}
	return cells, nil
}

func readRows(t *text, book *excelize.File, sheet string, without map[int][]int) error {
	rows, err := book.Rows(sheet)
	if errors.As(err, new(excelize.ErrSheetNotExist)) {
		return nil // a sheet with only a chart
	}
	if err != nil {
		return err
	}
	for number := 1; rows.Next(); number++ {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		if cells, err = withFormulas(t, book, sheet, number, cells, without[number]); err != nil {
			return err
		}
		if len(cells) > maxCells {
			cells, t.truncated = cells[:maxCells], true
		}
		for i := range cells {
			cells[i] = strings.Join(strings.Fields(cells[i]), " ")
		}
		if err := t.joined(strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return rows.Error()
}
