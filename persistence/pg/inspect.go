package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Inspection is what a report about a problem says of a database. It has no data of accounts.
type Inspection struct {
	Server        string    `json:"server"`
	SchemaVersion int32     `json:"schema_version"`
	Settings      []Setting `json:"settings"`
	Tables        []Table   `json:"tables"` // largest first
}

// Setting is a setting of the server.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Unit  string `json:"unit,omitempty"`
}

// Table is a table with its size.
type Table struct {
	Name  string `json:"name"`
	Rows  int64  `json:"rows_estimate"` // by the last analysis; -1: there was none
	Bytes int64  `json:"bytes"`         // with its indexes
}

// inspectedSettings are the settings on which the guarantees and the capacity of the service depend.
var inspectedSettings = []string{
	"archive_mode", "autovacuum", "checkpoint_timeout", "effective_cache_size", "fsync", "full_page_writes", "hot_standby", "maintenance_work_mem", "max_connections",
	"max_wal_size", "shared_buffers", "synchronous_commit", "synchronous_standby_names", "wal_level", "work_mem",
}

// maxInspectedTables bounds the list of tables. Tables of events have a partition for each period.
const maxInspectedTables = 1000

const (
	versionSQL  = `select version(), (select version from schema_version)`
	settingsSQL = `select name, setting, coalesce(unit, '') from pg_settings where name = any($1) order by name`
	tablesSQL   = `
	select n.nspname || '.' || c.relname, c.reltuples::bigint, pg_total_relation_size(c.oid)
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg\_%'
	order by 3 desc, 1 limit $1`
)

// Inspect reads the versions, the settings and the sizes of a database.
func (db *DB) Inspect(ctx context.Context) (*Inspection, error) {
	found := &Inspection{}
	batch := &pgx.Batch{}
	batch.Queue(versionSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&found.Server, &found.SchemaVersion) })
	batch.Queue(settingsSQL, inspectedSettings).Query(func(rows pgx.Rows) (err error) {
		found.Settings, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Setting])
		return err
	})
	batch.Queue(tablesSQL, maxInspectedTables).Query(func(rows pgx.Rows) (err error) {
		found.Tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
		return err
	})
	if err := db.Send(ctx, NoAccount, batch); err != nil {
		return nil, fmt.Errorf("inspecting the database: %w", err)
	}
	return found, nil
}
