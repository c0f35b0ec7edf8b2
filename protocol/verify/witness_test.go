package verify

import "testing"

func TestAConflictHasACurrentState(t *testing.T) {
	w := NewWitness()
	w.SawConflict("PUT /a", []byte(`{"code":"stale_version","current":{"version":2}}`))
	if found := w.Findings(); len(found) != 0 {
		t.Errorf("%v", found)
	}
	for _, body := range []string{`{"current":null}`, `{}`, ``} {
		w.SawConflict("PUT /a", []byte(body))
	}
	if found := w.Findings(); len(found) != 3 || found[0].Kind != Malformed {
		t.Errorf("%v", found)
	}
}
