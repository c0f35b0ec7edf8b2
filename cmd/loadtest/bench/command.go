package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/embedded"
)

const (
	commandTurns  = 50 // live turns of a round
	inputsPerTurn = 4  // through each node; a turn has at most protocol.MaxPendingInputs inputs that wait
)

// commandBench measures P12.
type commandBench struct{ *bench }

// steered is a live turn with the clients of its account at both nodes.
type steered struct {
	turn           string
	owner, another *client.Client
}

func (b commandBench) commands(ctx context.Context) (err error) {
	turns := b.pickCount(commandTurns, 4)
	accounts, err := b.site.EnsureAccounts(ctx, load.AccountsFor(turns))
	if err != nil {
		return err
	}
	cluster, err := b.site.StartCluster(ctx, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.End(context.WithoutCancel(ctx))) }()
	peer := "http://" + cluster.Nodes[1].Public
	base, err := newCommit(ctx, b.bench)
	if err != nil {
		return err
	}
	var remote, local, commit, ratio figures.Samples
	table := figures.NewTable("round", "through the other node, p50 ms", "through the owner", "the commit", "ratio of the other node", "of the owner")
	for round := range b.rounds {
		one, err := base.median(ctx, b.pickDuration(3*time.Second, time.Second))
		if err != nil {
			return err
		}
		far, near, err := b.steerAll(ctx, accounts, peer, turns)
		if err != nil {
			return err
		}
		remote, local, commit, ratio = append(remote, far), append(local, near), append(commit, one), append(ratio, far/one)
		table.Add(round+1, far, near, one, far/one, near/one)
		b.Say("  %s", table.Last())
	}
	b.report.Add(goals.Figure{Goal: "P12", Ours: remote, Baseline: commit, Unit: "ms", Score: ratio})
	b.report.Detail("P12", fmt.Sprintf("%d live turns, %d inputs through each node in a round; through the owner %.3g ms",
		turns, turns*inputsPerTurn, local.Median()), table)
	return nil
}

// steerAll starts turns at the service, sends inputs to them through both nodes, and ends them. It returns the medians of
// the times in milliseconds: through the peer, and through the service.
func (b commandBench) steerAll(ctx context.Context, accounts []*load.Account, peer string, turns int) (far, near float64, err error) {
	waiting := load.Script{Tokens: 1, First: time.Minute}.String() // EndTurns ends it
	var all []steered
	for i := range turns {
		account := accounts[i%len(accounts)]
		another, err := account.At(peer, load.CallTimeout)
		if err != nil {
			return 0, 0, err
		}
		stream, response, err := account.API.OpenStream(ctx, client.Request{
			Method: "POST", Path: "/chat", Body: client.ChatRequest{Input: client.Text(waiting)}, IdempotencyKey: "steered-" + strconv.FormatInt(load.Monotonic(), 10),
		}, 0)
		if err != nil {
			return 0, 0, err
		}
		if stream == nil {
			return 0, 0, fmt.Errorf("starting a turn: %d %s", response.Status, response.Body)
		}
		all = append(all, steered{stream.Turn, account.API, another})
		stream.Close()
	}
	var times [2]figures.Samples
	short := load.Script{Tokens: 1}.String()
	for n := range inputsPerTurn {
		for _, s := range all {
			for i, node := range []*client.Client{s.another, s.owner} {
				begun := time.Now()
				if _, err := node.Steer(ctx, s.turn, fmt.Sprintf("%d-%d", i, n), short, protocol.DeliverNextStep); err != nil {
					return 0, 0, fmt.Errorf("steering: %w", err)
				}
				times[i] = append(times[i], millis(time.Since(begun)))
			}
		}
	}
	if err := b.site.EndTurns(ctx); err != nil {
		return 0, 0, err
	}
	return times[0].Median(), times[1].Median(), b.site.AwaitIdle(ctx)
}

// commit is the baseline of P12: the statement that stores an input.
type commit struct {
	bench  *bench
	script string
}

// The turns exist only for the statement: their other rows are not needed, so they are inserted without foreign keys.
const (
	commitName     = "commit"
	commitSetupSQL = `
set session_replication_role = replica;
insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, owner, owner_epoch, next_sequence)
select md5('account')::uuid, md5('turn' || n)::uuid, md5('conversation' || n)::uuid, md5('branch' || n)::uuid, gen_random_uuid(), gen_random_uuid(),
       '{}'::json, 'running', true, md5('node')::uuid, 1, 1
from generate_series(1, %d) as n;
analyze turns;`
	commitScript = `\set n random(1, %d)
with turn as (
    update turns set next_sequence = next_sequence + 1
    where account_id = md5('account')::uuid and turn_id = md5('turn' || :n)::uuid and owner = md5('node')::uuid and owner_epoch = 1
    returning account_id, turn_id, next_sequence - 1 as sequence
), record as (
    insert into turn_records (account_id, turn_id, kind, key, sequence, body)
    select account_id, turn_id, 'steering', gen_random_uuid()::text, sequence, '%s'::json from turn
)
insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
select account_id, turn_id, sequence, sequence, 1, '\x%s' from turn;
`
	// Bytes of the event that accepts an input, and of the record of the input.
	eventBytes, recordBytes = 414, 300
)

func newCommit(ctx context.Context, b *bench) (*commit, error) {
	if err := b.site.MakeDatabase(ctx, commitName); err != nil {
		return nil, err
	}
	if _, err := b.site.SQLIn(ctx, commitName, fmt.Sprintf(commitSetupSQL, commandTurns)); err != nil {
		return nil, err
	}
	c := &commit{b, filepath.Join(b.site.Folder, "commit.sql")}
	text := fmt.Sprintf(commitScript, commandTurns, jsonOf(recordBytes), hexOf(eventBytes))
	return c, os.WriteFile(c.script, []byte(text), 0o644)
}

// median runs the statement with one client over a duration, and returns the median of its times in milliseconds.
func (c *commit) median(ctx context.Context, over time.Duration) (float64, error) {
	program, err := embedded.PostgresProgram("pgbench")
	if err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp(c.bench.site.Folder, "commit-")
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program, "--no-vacuum", "--protocol=prepared", "--file="+c.script, "--client=1", "--log",
		"--time="+strconv.Itoa(max(1, int(over.Seconds()))), c.bench.site.Postgres.DSN(embedded.Superuser, commitName))
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("pgbench: %w: %.500s", err, output)
	}
	logs, err := filepath.Glob(filepath.Join(folder, "pgbench_log.*"))
	if err != nil || len(logs) != 1 {
		return 0, fmt.Errorf("pgbench wrote the logs %v: %w", logs, err)
	}
	log, err := os.ReadFile(logs[0])
	if err != nil {
		return 0, err
	}
	return medianOfLog(string(log))
}

// medianOfLog returns the median of the times in a log of pgbench, in milliseconds. The third field of a line is the time of
// a transaction in microseconds.
func medianOfLog(log string) (float64, error) {
	var times figures.Samples
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return 0, fmt.Errorf("an unknown line in the log of pgbench: %q", line)
		}
		us, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return 0, fmt.Errorf("the log of pgbench: %w", err)
		}
		times = append(times, us/1000)
	}
	if len(times) == 0 {
		return 0, errors.New("the log of pgbench is empty")
	}
	return times.Median(), nil
}
