package pg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// PageBytes is the maximum size of the JSON of a page; only a page of one item may be larger. It equals the maximum
// size of a request body. A page of 100 typical items is smaller; 100 items of the maximum size would need tens of
// megabytes of memory for each such request.
const PageBytes = 1 << 20

// CutPage returns the rows that form a page: at most limit, of at most PageBytes, but at least one. The caller reads
// one row more than limit, so that more can report whether rows follow. A statement with large rows uses WithinPage.
func CutPage[T any](rows []T, limit int) (page []T, more bool, err error) {
	size := 0
	for i := range rows {
		text, err := JSONText(&rows[i])
		if err != nil {
			return nil, false, err
		}
		if size += len(text); i == limit || i > 0 && size > PageBytes {
			return rows[:i], true, nil
		}
	}
	return rows, false, nil
}

// NextPage is CutPage for a list whose next page starts after its last row. next is the position of that row; nil: no row follows.
func NextPage[T, P any](rows []T, limit int, position func(last *T) P) (page []T, next *P, err error) {
	page, more, err := CutPage(rows, limit)
	if err != nil || !more {
		return page, nil, err
	}
	after := position(&page[len(page)-1])
	return page, &after, nil
}

// WithinPage returns a statement that sends the rows of a list only up to the first one that does not fit into PageBytes, for
// CutPage. columns are those of the list that are sent, size is the length of a row in bytes, and order is that of the list. The
// list has no columns named n, size and bytes.
func WithinPage(list, columns, size, order string) string {
	return `
	select ` + columns + ` from (
		select *, row_number() over in_order as n, sum(size) over in_order as bytes
		from (select *, ` + size + ` as size from (` + list + `) list) page
		window in_order as (order by ` + order + `)
	) sized
	where n <= 2 or bytes - size <= ` + strconv.Itoa(PageBytes) + `
	order by ` + order
}

// JSONText encodes a value for a column of type json.
func JSONText(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding for the database: %w", err)
	}
	return text, nil
}

// ArrayText returns identifiers as the text of an array, for a statement that gets an array of arrays: those of Postgres are
// rectangular.
func ArrayText[T ~[16]byte](ids []T) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = uuid.UUID(id).String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// Latest and HighestID are after every time and every identifier that is stored. A list in descending order that starts
// there needs no special case for its first page, which would prevent the use of the index.
var (
	Latest    = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	HighestID = [16]byte(bytes.Repeat([]byte{0xff}, 16))
)
