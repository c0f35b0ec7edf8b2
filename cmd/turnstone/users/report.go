package users

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"turnstone/http/auth"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/operator"
	"turnstone/protocol"
)

// listedAtOnce is the number of accounts that List reads together. It prints them before it reads further ones.
const listedAtOnce = 500

// List prints at most limit accounts after one of them, in the order of their creation; limit 0 means all. asJSON prints
// one object per line. more is the last account that was printed if there are further ones, and nil otherwise.
func List(ctx context.Context, db *persistence.Stores, to io.Writer, after protocol.AccountID, limit int, asJSON bool) (more *protocol.AccountID, err error) {
	for printed := 0; ; {
		size := listedAtOnce
		if limit > 0 {
			size = min(size, limit-printed)
		}
		page, err := db.Accounts.ListAccounts(ctx, after, size+1)
		if err != nil {
			return nil, err
		}
		full := len(page) > size
		page = page[:min(size, len(page))]
		for i := range page {
			if err := printListed(to, &page[i], asJSON); err != nil {
				return nil, err
			}
		}
		if !full {
			return nil, nil // there are no further accounts
		}
		after, printed = page[len(page)-1].AccountID, printed+size
		if printed == limit {
			return &after, nil
		}
	}
}

func printListed(to io.Writer, a *accounts.Listed, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(to).Encode(a)
	}
	_, err := fmt.Fprintf(to, "%s  %-8s  created %s  last active %-20s  %s\n", a.AccountID, a.State, timeText(&a.CreatedAt), timeText(a.LastActiveAt), printable(a.Email))
	return err
}

// timeText returns a time as operators read it.
func timeText(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.UTC().Format(time.RFC3339)
}

// printable returns a text that somebody else chose without characters that control a terminal.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// PrintJSON prints a value as indented JSON.
func PrintJSON(to io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(to, "%s\n", text)
	}
	return err
}

// Shown is an account in any state, with what it has.
type Shown struct {
	accounts.Profile
	Has *operator.Summary `json:"has"`
}

// Show returns the account that an operator names.
func Show(ctx context.Context, db *persistence.Stores, name string) (*Shown, error) {
	account, err := Find(ctx, db, name)
	if err != nil {
		return nil, err
	}
	profile, err := db.Accounts.Profile(ctx, account)
	if err != nil {
		return nil, err
	}
	has, err := db.Operator.Summary(ctx, account, time.Now().Add(-auth.SessionIdle))
	return &Shown{Profile: *profile, Has: has}, err
}

// Print prints a line for each fact.
func (a *Shown) Print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(table, "%s\t%v\n", name, value) }
	row("account", a.AccountID)
	row("email", printable(a.Email))
	row("state", a.State)
	row("created", timeText(&a.CreatedAt))
	row("last active", timeText(a.LastActiveAt))
	row("password", map[bool]string{true: "yes", false: "no"}[a.HasPassword])
	for _, i := range a.Identities {
		row("identity", printable(i.Issuer+" "+i.Subject))
	}
	row("passkeys", a.Passkeys)
	row("conversations", a.Has.Conversations)
	row("messages", a.Has.Messages)
	row("projects", a.Has.Projects)
	row("shares", a.Has.Shares)
	row("imports", a.Has.Imports)
	row("sessions", a.Has.Sessions)
	row("live turns", a.Has.LiveTurns)
	row("turns in total", a.Has.Usage.Turns)
	row("input tokens", a.Has.Usage.InputTokens)
	row("output tokens", a.Has.Usage.OutputTokens)
	return table.Flush()
}
