package chaos

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// fewest is how many values a p99 needs. Below that, only the maximum says something.
	fewest = 50
	// The promised times of the program as it is shipped. A command to a turn whose node has died waits until it is taken over, a
	// request whose key that node has claimed until it is declared dead.
	outcomeWithin  = 2 * time.Second
	takeoverWithin = 5 * time.Second
)

// report prints the figures, and checks that the run has proved something.
func (r *run) report(took time.Duration) {
	commands, decisions := 0, 0
	for _, known := range r.all {
		commands += len(known.told)
		decisions += len(known.decided)
	}
	writes := 0
	for _, w := range r.writers {
		writes += len(w.created) + len(w.files)
	}
	adopted := len(query(r.site, pgx.RowTo[uuid.UUID], `select turn_id from turns where owner_epoch > 1`))
	r.t.Logf("%s, %d nodes, %d live turns: %d turns of clients ended and %d were started in all, %d after a takeover; %d commands, %d decisions, %d conversations and files",
		took.Round(time.Second), nodeCount, r.turns, len(r.all), len(r.starts), adopted, commands, decisions, writes)
	for _, kind := range slices.Sorted(maps.Keys(r.figures)) {
		f := r.figures[kind]
		r.t.Logf("%-25s %2d faults: pause of turns %s", kind, f.faults, spread(f.pauses))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.took)) {
		r.t.Logf("%-25s through nodes without a fault: %s", kind, spread(r.took[kind]))
	}
	for _, one := range r.slow {
		r.t.Log(one)
	}
	if adopted == 0 || commands == 0 || decisions == 0 || writes == 0 || len(r.all) < 2*r.turns {
		r.t.Error("the run is too small to prove something")
	}
}

// checkTimes checks the promised times.
func (r *run) checkTimes() {
	for kind, took := range r.took {
		limit := outcomeWithin
		switch kind {
		case "command", "create":
			limit += takeoverWithin
		case "upload": // its content may have been sent to a node that ended
			continue
		}
		if longest := slices.Max(took); longest > limit {
			r.t.Errorf("a %s through a node without a fault took %s, more than %s", kind, longest, limit)
		}
	}
}

// spread describes durations: a p99 only if there are enough of them.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	text := fmt.Sprintf("%d, p50 %s", len(all), quantile(all, 0.5))
	if len(all) >= fewest {
		text += fmt.Sprintf(", p99 %s", quantile(all, 0.99))
	}
	return text + fmt.Sprintf(", max %s", quantile(all, 1))
}

// quantile returns a quantile of sorted durations, to the millisecond.
func quantile(sorted []time.Duration, q float64) time.Duration {
	at := min(int(q*float64(len(sorted))), len(sorted)-1)
	return sorted[at].Round(time.Millisecond)
}
