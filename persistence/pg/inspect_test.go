package pg_test

import (
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
)

func TestAnInspectionHasSettingsAndSizesOfTables(t *testing.T) {
	db := pgtest.New(t)
	pgtest.Account(t, db)
	found, err := db.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(found.Server, "PostgreSQL ") || found.SchemaVersion != pg.SchemaVersion() {
		t.Errorf("%q, schema %d", found.Server, found.SchemaVersion)
	}
	setting := func(name string) pg.Setting {
		at := slices.IndexFunc(found.Settings, func(s pg.Setting) bool { return s.Name == name })
		if at < 0 {
			t.Fatalf("%s is missing in %+v", name, found.Settings)
		}
		return found.Settings[at]
	}
	if fsync, buffers := setting("fsync"), setting("shared_buffers"); fsync.Value == "" || buffers.Unit != "8kB" || setting("max_connections").Value == "" {
		t.Errorf("%+v", found.Settings)
	}
	at := slices.IndexFunc(found.Tables, func(s pg.Table) bool { return s.Name == "public.accounts" })
	if at < 0 || found.Tables[at].Bytes == 0 {
		t.Errorf("%+v", found.Tables)
	}
	if !slices.IsSortedFunc(found.Tables, func(a, b pg.Table) int { return int(b.Bytes - a.Bytes) }) {
		t.Error("the tables are not sorted by their size")
	}
}
