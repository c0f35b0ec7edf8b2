package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// plan declares the faults of a round to the ledgers of all clients.
func (a *run) plan(victims []*accountState) (over func()) {
	var all []func()
	for _, account := range slices.Concat(a.everyone(), a.data, victims) {
		all = append(all, account.users[0].Ledger.Plan())
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// readAll reads every turn and every conversation of a round once more after all turns have ended. The checker compares
// the responses with the database.
func (a *run) readAll(h *history) {
	ctx, cancel := context.WithTimeout(context.Background(), restTimeout)
	defer cancel()
	for n, account := range a.accounts {
		c := &client{name: fmt.Sprint("rest.", n), user: account.users[0], account: account, history: h, notes: a.notes, clock: a.clock, ctx: ctx}
		for _, conversation := range account.conversations {
			c.messages(conversation)
		}
		for i, turn := range account.turns {
			after := int64(0)
			if i%2 == 1 { // every second turn from its middle
				after = turn.last / 2
			}
			if !c.whole(turn, after) {
				break
			}
		}
	}
}

// whole reads a finished turn from an event to its end. more is false if the account has used up its limit of replays.
func (c *client) whole(turn *knownTurn, after int64) (more bool) {
	stream, refused, err := c.user.FollowAgain(c.ctx, turn.id, after, "")
	if refused != nil && refused.Status == http.StatusTooManyRequests {
		return false
	}
	if err != nil || refused != nil {
		c.notes.violation(lost, "%s cannot be read after the round: %v %+v", turn.id, err, refused)
		return true
	}
	defer stream.Close()
	err = stream.Drain(func(e sitetest.Event) { c.history.saw(turn.id, e.Sequence, e.Data) })
	if err != nil || !stream.Finished() {
		c.notes.violation(gaps, "%s, read from event %d after the round, ends at event %d: %v", turn.id, after, stream.After(), err)
	}
	return true
}

// useWithoutFaults uses the service while no fault is injected, so every refusal is a finding of the ledger. A deleted
// object must be unreadable at once.
func (a *run) useWithoutFaults(round int) {
	ctx, cancel := context.WithTimeout(context.Background(), restTimeout)
	defer cancel()
	for n, account := range a.accounts {
		if err := a.useAndDelete(ctx, account.users[0], fmt.Sprintf("T%06x%06x", round, n)); err != nil {
			a.notes.violation(badResponse, "without a fault: %v", err)
		}
	}
}

func (a *run) useAndDelete(ctx context.Context, u *sitetest.User, token string) error {
	stream, refused, err := u.ChatAgain(ctx, sitetest.NewChatBody(token+" words=3"))
	if err != nil {
		return fmt.Errorf("starting a turn: %w", err)
	}
	if refused != nil {
		return fmt.Errorf("starting a turn: %+v", refused)
	}
	defer stream.Close()
	if _, err := stream.Rest(); err != nil {
		return fmt.Errorf("reading its stream: %w", err)
	}
	var turn protocol.Turn
	response, err := u.RequestAgain(ctx, http.MethodGet, "/chat/turns/"+stream.Turn, nil)
	if err = errors.Join(err, decoded(response, http.StatusOK, &turn)); err != nil {
		return err
	}
	resource := "/conversations/" + turn.ConversationID.String()
	response, err = u.RequestAgain(ctx, http.MethodDelete, resource, nil)
	if err = errors.Join(err, decoded(response, http.StatusNoContent, nil)); err != nil {
		return err
	}
	for _, path := range []string{resource, resource + "/messages", "/chat/turns/" + stream.Turn, "/chat/turns/" + stream.Turn + "/events"} {
		response, err := u.RequestAgain(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if response.Status != http.StatusNotFound {
			a.notes.violation(stillReadable, "%s, after its deletion: %d", response.Request, response.Status)
		}
	}
	return nil
}

func decoded(response *sitetest.Response, status int, into any) error {
	if response == nil {
		return nil // the caller joins the error of the request
	}
	return response.Decode(status, into)
}

// The minimums of a run for each minute of its length, on any host computer. A run with less proves nothing.
const (
	leastDecided      = 20  // approvals
	leastAcknowledged = 500 // more than the clients of the queues write
	leastTakeovers    = 3
	leastQueues       = 50
	leastQueueFaults  = 100 // while at least one queue drained
	leastTasks        = 40  // research tasks that were acknowledged
	leastShares       = 5
	leastFiles        = 5
	leastImports      = 2
	leastBranches     = 10 // and forks
	leastErased       = 1  // accounts
	leastEach         = 1  // faults of every kind, including a process that resumed as a second owner
)

// checkMinimums reports a run in which too little happened. There are no minimums for a run shorter than a minute.
func (a *run) checkMinimums(length time.Duration) {
	minutes := int(length / time.Minute)
	if !a.notes.clean() { // the run ended early
		return
	}
	short := func(what string, got, least int) {
		if got < least*minutes {
			a.notes.violation(tooFew, "%d %s in %s, at least %d are needed", got, what, length, least*minutes)
		}
	}
	for _, l := range lanes {
		for _, kind := range l.kinds {
			short("times "+kind.name, a.result.Faults[kind.name], leastEach)
		}
	}
	short("acknowledged writes", a.result.Acknowledged, leastAcknowledged)
	short("approvals decided", a.result.Decided, leastDecided)
	short("turns taken over", a.result.Adopted, leastTakeovers)
	short("research tasks", a.result.Tasks, leastTasks)
	short("shares", a.result.Shares, leastShares)
	short("files", a.result.Files, leastFiles)
	short("imports", a.result.Imports, leastImports)
	short("branches and forks", a.result.Branches, leastBranches)
	short("accounts erased", a.result.Erased, leastErased)
	short("queues drained", a.result.Queues, leastQueues)
	short("faults while queues drained", a.result.QueueFaults, leastQueueFaults)
}
