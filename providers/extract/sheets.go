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

// readSheets reads an XLSX workbook: each row is a line with the shown values, separated by tabs.
func readSheets(t *text, c content) error {
	if _, err := openArchive(c); err != nil {
		return err
	}
	// The limits are the same, so that no part is unpacked to a file.
	book, err := excelize.OpenReader(c.reader(), excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxUnpacked})
	if err != nil {
		return err
	}
	sheets := book.GetSheetList()
	if len(sheets) == 0 {
		return errDamaged // another kind of Office document
	}
	for _, sheet := range sheets {
		if err := t.begin(protocol.BlockSheet, sheet); err != nil {
			return err
		}
		if err := readRows(t, book, sheet); err != nil {
			return err
		}
	}
	return nil
}

func readRows(t *text, book *excelize.File, sheet string) error {
	rows, err := book.Rows(sheet)
	if errors.As(err, new(excelize.ErrSheetNotExist)) {
		return nil // a sheet with only a chart
	}
	if err != nil {
		return err
	}
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
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
