package persistence

// PageBytes is how much JSON a page may have; beyond it, a page has one item only. It is as large as the largest request
// body. 100 usual items are smaller; 100 of the largest ones would be tens of megabytes in memory for every such request.
const PageBytes = 1 << 20

// cutPage returns the rows that make a page: at most limit, of at most PageBytes, but at least one. The caller reads one
// row more than limit, so that more can say whether rows follow. A statement whose rows are large bounds what it reads by
// @page_bytes; it always reads the first row that does not fit.
func cutPage[T any](rows []T, limit int) (page []T, more bool, err error) {
	size := 0
	for i := range rows {
		text, err := jsonText(&rows[i])
		if err != nil {
			return nil, false, err
		}
		if size += len(text); i == limit || i > 0 && size > PageBytes {
			return rows[:i], true, nil
		}
	}
	return rows, false, nil
}
