package turnstone_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	createTable  = regexp.MustCompile(`(?ms)^create (?:unlogged )?table (\w+) \((.*?)^?\)(?: with| partition|;)`)
	inlineKey    = regexp.MustCompile(`(?m)^\s*(\w+)[^,\n]* primary key`)
	tableKey     = regexp.MustCompile(`primary key \(([^)]*)\)`)
	replacedKey  = regexp.MustCompile(`(?s)alter table (\w+) [^;]*add primary key \(([^)]*)\)`)
	droppedTable = regexp.MustCompile(`(?m)^drop table (\w+)`)
	scalingRow   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (`\\w+`|local|reference|each server) \\| .+ \\|$")
)

// primaryKeys returns the columns of the primary key of every table of the migrations.
func primaryKeys(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("persistence/migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range createTable.FindAllStringSubmatch(string(text), -1) {
			keys[table[1]] = nil
			if key := tableKey.FindStringSubmatch(table[2]); key != nil {
				keys[table[1]] = strings.Split(key[1], ", ")
			} else if key := inlineKey.FindStringSubmatch(table[2]); key != nil {
				keys[table[1]] = []string{key[1]}
			}
		}
		for _, table := range replacedKey.FindAllStringSubmatch(string(text), -1) {
			keys[table[1]] = strings.Split(table[2], ", ")
		}
		for _, table := range droppedTable.FindAllStringSubmatch(string(text), -1) {
			delete(keys, table[1])
		}
	}
	return keys
}

// TestEveryTableCanBeDistributedAsTheScalingPageSays compares the tables of the migrations with those of docs/scaling.md. A
// distributed table has its distribution column in its primary key, and a table by account has the account first. The page
// names the others: they stay on one server, or are on each.
func TestEveryTableCanBeDistributedAsTheScalingPageSays(t *testing.T) {
	keys := primaryKeys(t)
	if len(keys) < 40 {
		t.Fatalf("only %d tables were found", len(keys))
	}
	listed := map[string]string{}
	for _, row := range scalingRow.FindAllStringSubmatch(readPage(t, "docs/scaling.md"), -1) {
		listed[row[1]] = row[2]
	}
	for _, table := range slices.Sorted(maps.Keys(keys)) {
		distribution, found := listed[table]
		delete(listed, table)
		column, distributed := strings.CutPrefix(distribution, "`")
		column = strings.TrimSuffix(column, "`")
		at := slices.Index(keys[table], column)
		switch {
		case !found:
			t.Errorf("docs/scaling.md does not list %s", table)
		case distributed && at < 0:
			t.Errorf("%s has the primary key %v without its distribution column %s", table, keys[table], column)
		case column == "account_id" && at > 0:
			t.Errorf("%s has the primary key %v, whose first column should be account_id", table, keys[table])
		case !distributed && slices.Contains(keys[table], "account_id"):
			t.Errorf("%s is by account, but is not distributed: %s", table, distribution)
		}
	}
	for table := range listed {
		t.Errorf("docs/scaling.md lists %s, which no migration creates", table)
	}
}
