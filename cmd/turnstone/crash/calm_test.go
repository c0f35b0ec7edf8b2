package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// plan declares the faults of a round to the ledgers of all clients.
func (a *attack) plan() (over func()) {
	var all []func()
	for _, home := range a.homes {
		all = append(all, home.users[0].Ledger.Plan())
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// readAll has every turn and every conversation of a round read once more, when all is at rest: what a client gets now is
// what the database has.
func (a *attack) readAll(h *history) {
	ctx, cancel := context.WithTimeout(context.Background(), restPatience)
	defer cancel()
	for n, home := range a.homes {
		c := &client{name: fmt.Sprint("rest.", n), user: home.users[0], home: home, history: h, notes: a.notes, clock: a.clock, ctx: ctx}
		for _, conversation := range home.conversations {
			c.messages(conversation)
		}
		for i, turn := range home.turns {
			after := int64(0)
			if i%2 == 1 { // every other one from its middle
				after = turn.last / 2
			}
			if !c.whole(turn, after) {
				break
			}
		}
	}
}

// whole reads a finished turn after an event, to its end. more is false when the account's quota of replays is used up.
func (c *client) whole(turn *knownTurn, after int64) (more bool) {
	stream, refused, err := c.user.Follow(c.ctx, turn.id, after, "")
	if refused != nil && refused.Status == http.StatusTooManyRequests {
		return false
	}
	if err != nil || refused != nil {
		c.notes.violation(lost, "%s cannot be read at rest: %v %+v", turn.id, err, refused)
		return true
	}
	defer stream.Close()
	err = stream.Drain(func(e sitetest.Event) { c.history.saw(turn.id, e.Sequence, e.Data) })
	if err != nil || !stream.Finished {
		c.notes.violation(gaps, "%s, read after %d at rest, ends at %d: %v", turn.id, after, stream.After, err)
	}
	return true
}

// calm uses the service while nothing is broken: whatever is refused now is a finding. What is deleted is gone for every
// reader at once.
func (a *attack) calm(round int) {
	ctx, cancel := context.WithTimeout(context.Background(), restPatience)
	defer cancel()
	for n, home := range a.homes {
		if err := a.useAndDelete(ctx, home.users[0], fmt.Sprintf("T%06x%06x", round, n)); err != nil {
			a.notes.violation(badAnswer, "at rest: %v", err)
		}
	}
}

func (a *attack) useAndDelete(ctx context.Context, u *sitetest.User, token string) error {
	stream, refused, err := u.TryChat(ctx, sitetest.Saying(token+" words=3"))
	if err != nil || refused != nil {
		return fmt.Errorf("a start: %w %+v", err, refused)
	}
	defer stream.Close()
	if _, err := stream.Rest(); err != nil {
		return fmt.Errorf("a stream: %w", err)
	}
	var turn protocol.Turn
	answer, err := u.Ask(ctx, http.MethodGet, "/chat/turns/"+stream.Turn, nil)
	if err = errors.Join(err, decoded(answer, http.StatusOK, &turn)); err != nil {
		return err
	}
	place := "/conversations/" + turn.ConversationID.String()
	answer, err = u.Ask(ctx, http.MethodDelete, place, nil)
	if err = errors.Join(err, decoded(answer, http.StatusNoContent, nil)); err != nil {
		return err
	}
	for _, path := range []string{place, place + "/messages", "/chat/turns/" + stream.Turn, "/chat/turns/" + stream.Turn + "/events"} {
		answer, err := u.Ask(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if answer.Status != http.StatusNotFound {
			a.notes.violation(stillReadable, "%s, after its deletion: %d", answer.Request, answer.Status)
		}
	}
	return nil
}

func decoded(answer *sitetest.Answer, status int, into any) error {
	if answer == nil {
		return nil // its error says why
	}
	return answer.Decode(status, into)
}

// What a run must have met for each minute of it, on any machine: else it proves nothing.
const (
	leastAcknowledged = 200
	leastTakeovers    = 3
	leastEach         = 1 // faults of every kind; of a process that woke up as a second owner too
)

// checkMinimums refuses a run in which too little happened. A shorter one than a minute may have missed a kind.
func (a *attack) checkMinimums(length time.Duration) {
	minutes := int(length / time.Minute)
	if !a.notes.clean() { // it ended early
		return
	}
	short := func(what string, got, least int) {
		if got < least*minutes {
			a.notes.violation(tooFew, "%d %s in %s, at least %d are needed", got, what, length, least*minutes)
		}
	}
	for _, l := range lanes {
		for _, w := range l.ways {
			short("times "+w.name, a.result.Faults[w.name], leastEach)
		}
	}
	short("acknowledged writes", a.result.Acknowledged, leastAcknowledged)
	short("turns taken over", a.result.Adopted, leastTakeovers)
}
