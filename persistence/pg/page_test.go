package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
)

// TestAPageSendsNoMoreThanFits checks that the rows of a page are cut in Postgres: of many large rows, one more is sent than fits.
func TestAPageSendsNoMoreThanFits(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	for _, c := range []struct{ size, rows, want int }{
		{1, 100, 100},
		{pg.PageBytes / 4, 100, 5},
		{pg.PageBytes / 4, 3, 3},
		{pg.PageBytes + 1, 100, 2}, // at least one fits, and the other shows that more follow
		{pg.PageBytes + 1, 1, 1},
	} {
		const list = `select n as number, repeat('x', @size) as content from generate_series(1, @rows) n order by n desc`
		found, err := pg.Rows(t.Context(), db.DB, account, pgx.RowTo[int], pg.WithinPage(list, `number`, `octet_length(content)`, `number desc`),
			pgx.NamedArgs{"size": c.size, "rows": c.rows})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != c.want || found[0] != c.rows {
			t.Errorf("%d rows of %d bytes: %v, want %d", c.rows, c.size, found, c.want)
		}
	}
}
