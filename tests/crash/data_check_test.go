package crash

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/verify"
)

// storedData are the conversations, branches and imports of the accounts with imports, and what is left of the accounts that were
// to be erased.
type storedData struct {
	Conversations map[string][]string // identifiers, by title
	Messages      map[string]int64    // by conversation
	Branches      map[string][]string // identifiers, by name
	Imports       map[string]storedImport
	Victims       map[string]string // account: victimThere, victimErasing
}

// storedImport is the state of an import, and how many of its runs ended with their processes. After two of them an import fails.
type storedImport struct {
	State protocol.ImportState
	Lost  int64
}

func (i storedImport) completed() bool { return i.State == protocol.ImportCompleted }

// failed reports whether the import has ended otherwise, without a reason.
func (i storedImport) failed() bool {
	return i.State != "" && i.State.Terminal() && !i.completed() && i.Lost < 2
}

// jobTimeout is how long an interrupted import or erasure may take after a run: each failure doubles the delay of its job, up to 10 minutes.
const jobTimeout = 11 * time.Minute

const (
	victimThere   = "there"
	victimErasing = "being erased"
)

func newStoredData() storedData {
	return storedData{
		Conversations: map[string][]string{}, Messages: map[string]int64{}, Branches: map[string][]string{},
		Imports: map[string]storedImport{}, Victims: map[string]string{},
	}
}

const dataSQL = `
select 'conversation', c.conversation_id, c.title,
       (select count(*) from messages m where m.account_id = c.account_id and m.conversation_id = c.conversation_id)
from conversations c where c.account_id = any($1) and c.deleted_at is null
union all
select 'branch', branch_id, name, 0 from branches where account_id = any($1) and name <> ''
union all
select 'import', import_id, state, lost_runs from imports where account_id = any($1)
union all
select 'victim', account_id, case when erasing_at is null then '` + victimThere + `' else '` + victimErasing + `' end, 0
from accounts where account_id = any($2)`

func (s *snapshot) readData(ctx context.Context, conn *pgx.Conn, data, victims []*accountState) error {
	s.Data = newStoredData()
	ids := func(accounts []*accountState) (all []protocol.AccountID) {
		for _, one := range accounts {
			all = append(all, one.id)
		}
		return all
	}
	rows, err := conn.Query(ctx, dataSQL, ids(data), ids(victims))
	if err != nil {
		return err
	}
	var kind, text string
	var id [16]byte
	var count int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &text, &count}, func() error {
		switch kind {
		case "conversation":
			conversation := protocol.ConversationID(id).String()
			s.Data.Conversations[text] = append(s.Data.Conversations[text], conversation)
			s.Data.Messages[conversation] = count
		case "branch":
			s.Data.Branches[text] = append(s.Data.Branches[text], protocol.BranchID(id).String())
		case "import":
			s.Data.Imports[protocol.ImportID(id).String()] = storedImport{protocol.ImportState(text), count}
		default:
			s.Data.Victims[protocol.AccountID(id).String()] = text
		}
		return nil
	})
	return err
}

// checkData checks imports, branches, forks and erasures against I1, I2, I10 and I12.
func (c *checker) checkData() {
	c.checkWrites(opBranch, c.Stored.Data.Branches)
	c.checkWrites(opFork, c.Stored.Data.Conversations)
	for _, o := range c.Operations {
		if n := c.Stored.Data.Messages[o.ID]; o.Kind == opFork && o.acknowledged() && n != 0 && n != o.Sequence {
			c.fail(notWhole, "the fork %s has %d messages, and %d were copied", o.ID, n, o.Sequence)
		}
	}
	c.checkImports()
	c.checkErasures()
}

// checkImports checks that an import that has ended has stored each conversation of its export once, with all messages. One that
// was interrupted continues later than a round waits; it may have stored any of them.
func (c *checker) checkImports() {
	var imports, conversations []verify.Write
	there := map[string][]string{}
	for _, o := range c.Operations {
		if o.Kind != opImport {
			continue
		}
		imports = append(imports, verify.Write{What: o.Key, ID: o.ID, Outcome: o.outcome()})
		one, stored := c.Stored.Data.Imports[o.ID]
		if stored && len(there[o.Key]) == 0 {
			there[o.Key] = []string{o.ID}
		}
		if one.failed() {
			c.fail(lost, "the import %s was acknowledged, and is %s", o.ID, one.State)
		}
		outcome := o.outcome()
		if outcome == verify.Acknowledged && !one.completed() {
			outcome = verify.Unknown
		}
		_, titles := exportOf(o.Text)
		for _, title := range titles {
			conversations = append(conversations, verify.Write{What: title, Outcome: outcome})
			for _, id := range c.Stored.Data.Conversations[title] {
				if n := c.Stored.Data.Messages[id]; n != exportedLength && outcome == verify.Acknowledged {
					c.fail(notWhole, "the imported conversation %s has %d messages, and the export %d", id, n, exportedLength)
				}
			}
		}
	}
	c.report(opImport, verify.CheckWrites(imports, there))
	c.report(opImport, verify.CheckWrites(conversations, c.Stored.Data.Conversations))
}

const erasingSQL = `select erasure_id::text from erasures where finished_at is null`

// checkInterruptedJobs waits at the end of a run until the imports and erasures that were interrupted have ended, and checks that each import
// that was acknowledged has completed.
func (a *run) checkInterruptedJobs() {
	ctx, cancel := context.WithTimeout(context.Background(), jobTimeout)
	defer cancel()
	var imports, erasures []string
	var failed error
	err := clocktest.Poll(ctx, restPoll, func() bool {
		failed = a.withDatabase(func(ctx context.Context, conn *pgx.Conn) error {
			var s snapshot
			if err := s.readData(ctx, conn, a.data, nil); err != nil {
				return err
			}
			imports = slices.DeleteFunc(slices.Clone(a.imports), func(id string) bool {
				one := s.Data.Imports[id]
				return one.State != "" && one.State.Terminal() && !one.failed()
			})
			rows, err := conn.Query(ctx, erasingSQL)
			if err != nil {
				return err
			}
			erasures, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		return failed == nil && len(imports) == 0 && len(erasures) == 0
	})
	if err != nil {
		a.notes.violation(notAtRest, "imports that were acknowledged and have not completed: %v; erasures: %v (%v)", imports, erasures, failed)
	}
}

// checkErasures checks that an account is there unless its erasure was acknowledged. If the outcome is unknown, both are right. An erasure
// that was interrupted continues later than a round waits.
func (c *checker) checkErasures() {
	asked := map[string]verify.Outcome{}
	for _, o := range c.Operations {
		if o.Kind != opErase {
			continue
		}
		if known, tried := asked[o.Text]; !tried || known == verify.Refused || o.acknowledged() {
			asked[o.Text] = o.outcome()
		}
	}
	for account, outcome := range asked {
		switch state := c.Stored.Data.Victims[account]; {
		case outcome == verify.Acknowledged && state == victimThere:
			c.fail(lost, "the erasure of the account %s was acknowledged, and it is there", account)
		case outcome == verify.Refused && state != victimThere:
			c.fail(untruthful503, "the erasure of the account %s was refused, and it is gone", account)
		}
	}
}

// plantedData returns a round with an import, a branch, a fork and an erasure.
func plantedData() *planted {
	p := newPlanted()
	_, titles := exportOf("I1")
	p.Stored.Data = newStoredData()
	d := &p.Stored.Data
	for n, title := range titles {
		id := fmt.Sprintf("conv_i%d", n)
		d.Conversations[title], d.Messages[id] = []string{id}, exportedLength
	}
	d.Conversations["F1"], d.Messages["conv_f1"] = []string{"conv_f1"}, 3
	d.Branches["B1"], d.Imports["imp_1"] = []string{"br_1"}, storedImport{State: protocol.ImportCompleted}
	d.Victims["acct_2"] = victimThere
	p.Operations = append(p.Operations,
		operation{Kind: opImport, Key: "K1", Text: "I1"},
		operation{Kind: opImport, Key: "K1", Text: "I1", Status: 202, ID: "imp_1"},
		operation{Kind: opBranch, Text: "B1", Status: 201, ID: "br_1"},
		operation{Kind: opFork, Text: "F1", Status: 201, ID: "conv_f1", Sequence: 3},
		operation{Kind: opErase, Text: "acct_1"},
		operation{Kind: opErase, Text: "acct_1", Status: 202},
		operation{Kind: opErase, Text: "acct_2", Status: 503},
	)
	return p
}

func TestCheckerFindsPlantedViolationsOfData(t *testing.T) {
	for name, c := range map[string]struct {
		breaks string
		how    func(*planted, *storedData)
	}{
		"nothing": {"", func(*planted, *storedData) {}},
		"an import that goes on": {"", func(_ *planted, d *storedData) {
			d.Imports["imp_1"], d.Conversations["I1 0"] = storedImport{State: protocol.ImportRunning}, nil
		}},
		"an import whose runs were killed": {"", func(_ *planted, d *storedData) {
			d.Imports["imp_1"], d.Conversations["I1 0"] = storedImport{protocol.ImportFailed, 2}, nil
		}},
		"a lost import":          {lost, func(_ *planted, d *storedData) { delete(d.Imports, "imp_1") }},
		"a failed import":        {lost, func(_ *planted, d *storedData) { d.Imports["imp_1"] = storedImport{protocol.ImportFailed, 1} }},
		"a lost conversation":    {lost, func(_ *planted, d *storedData) { d.Conversations["I1 0"] = nil }},
		"a doubled conversation": {doubledEffects, func(_ *planted, d *storedData) { d.Conversations["I1 0"] = []string{"conv_i0", "conv_i9"} }},
		"half a conversation":    {notWhole, func(_ *planted, d *storedData) { d.Messages["conv_i0"]-- }},
		"two imports of one key": {notIdempotent, func(p *planted, _ *storedData) {
			one := p.operation(opImport, 0)
			one.Status, one.ID = 202, "imp_2"
		}},
		"a lost branch":      {lost, func(_ *planted, d *storedData) { d.Branches["B1"] = nil }},
		"a doubled fork":     {doubledEffects, func(_ *planted, d *storedData) { d.Conversations["F1"] = []string{"conv_f1", "conv_f2"} }},
		"half a fork":        {notWhole, func(_ *planted, d *storedData) { d.Messages["conv_f1"] = 2 }},
		"an account stays":   {lost, func(_ *planted, d *storedData) { d.Victims["acct_1"] = victimThere }},
		"an unknown erasure": {"", func(p *planted, d *storedData) { p.operation(opErase, 1).Status, d.Victims["acct_1"] = 0, victimThere }},
		"an open erasure":    {"", func(_ *planted, d *storedData) { d.Victims["acct_1"] = victimErasing }},
		"a refused erasure":  {untruthful503, func(_ *planted, d *storedData) { delete(d.Victims, "acct_2") }},
	} {
		t.Run(name, func(t *testing.T) {
			p, found := plantedData(), newFindings()
			c.how(p, &p.Stored.Data)
			check(&p.record, found)
			if c.breaks == "" && !found.clean() || c.breaks != "" && found.count(c.breaks) == 0 {
				t.Errorf("want %q; the violations are %s", c.breaks, fmt.Sprint(found.violations))
			}
		})
	}
}

func TestTheFeedMustReportWhatWasAcknowledged(t *testing.T) {
	operations := []operation{
		{Kind: opFork, Client: "one", Status: 201, ID: "conv_1"},
		{Kind: opBranch, Client: "one", Status: 201, ID: "br_1"},
		{Kind: opImported, Client: "one", Status: 200, ID: "conv_2"},
		{Kind: opBranch, Client: "one", ID: "br_2"},
		{Kind: opBranch, Client: "another", Status: 201, ID: "br_3"},
		{Kind: opShare, Client: "one", Status: 201, ID: "share_1"},
	}
	if missing := unreported(operations, "one", map[string]bool{"conversation conv_1": true, "branch br_1": true, "conversation conv_2": true}); len(missing) != 0 {
		t.Errorf("%q", missing)
	}
	if missing := unreported(operations, "one", map[string]bool{"conversation conv_1": true}); len(missing) != 2 {
		t.Errorf("%q", missing)
	}
}
