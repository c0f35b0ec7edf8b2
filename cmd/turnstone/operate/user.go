package operate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/users"
	"turnstone/persistence"
	"turnstone/protocol"
)

// User has the commands for accounts.
type User struct {
	List     userList     `cmd:"" help:"List accounts, in the order of their creation."`
	Show     userShow     `cmd:"" help:"Show the state of an account, how it signs in and how much it has. Nothing that users wrote is shown."`
	Sessions userSessions `cmd:"" help:"List the devices on which an account is signed in, or sign out one or all of them."`
	Add      userAdd      `cmd:"" help:"Create an account."`
	Disable  userDisable  `cmd:"" help:"Disable an account: end its sessions, cancel its live turns and hold its queues. Nothing is deleted."`
	Enable   userEnable   `cmd:"" help:"Let a disabled account sign in again. Held follow-ups stay held."`
	Password userPassword `cmd:"" help:"Give an account a new password and end its sessions."`
	Erase    userErase    `cmd:"" help:"Erase an account and everything in it, as the account itself can. This cannot be undone."`
	Erasure  userErasure  `cmd:"" help:"Show how much the erasure of an account has deleted."`
}

// PasswordBytes is the number of random bytes in a generated password.
const PasswordBytes = 15

// passwordOptions select the source of a password. The command line is not one of them, because other users of the
// machine can see it.
type passwordOptions struct {
	PasswordStdin bool `help:"Read the password from the first line of standard input. Unset: a password is generated and printed."`
}

type userList struct {
	Limit uint   `default:"100" help:"Print at most so many accounts. 0: all."`
	After string `help:"Start after the account with this identifier (acct_…)."`
	JSON  bool   `name:"json" help:"Print one JSON object per account and line."`
}

type userShow struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

type userSessions struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	End     string `xor:"end" help:"Sign out the device with this session (sess_…)."`
	EndAll  bool   `xor:"end" help:"Sign out all devices."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

type userErase struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	Confirm string `required:"" help:"The email address of the account or, if it has none, its identifier, to confirm that it is the one to erase."`
}

type userAdd struct {
	Email string `arg:"" help:"Email address to sign in with."`
	Name  string `help:"Display name. Unset: the part of the address before the @."`
	passwordOptions
}

type userDisable struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
}

type userEnable struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
}

type userPassword struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	passwordOptions
}

type userErasure struct {
	Erasure string `arg:"" help:"Identifier (era_…) from the response to the erasure."`
}

// Run prints accounts on stdout. If there are more than the limit, it says on stderr how to continue.
func (c *userList) Run(ctx context.Context, p *Program) error {
	var after protocol.AccountID
	if c.After != "" {
		if err := after.UnmarshalText([]byte(c.After)); err != nil {
			return fmt.Errorf("%s %w", c.After, err)
		}
	}
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		more, err := users.List(ctx, db, p.Stdout, after, int(c.Limit), c.JSON) // a limit that overflows is negative and means all
		if err == nil && more != nil {
			_, err = fmt.Fprintf(p.Stderr, "There are more accounts: --after %s\n", more)
		}
		return err
	})
}

// Run prints an account in any state.
func (c *userShow) Run(ctx context.Context, p *Program) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		shown, err := users.Show(ctx, db, c.Account)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return users.PrintJSON(p.Stdout, shown)
		default:
			return shown.Print(p.Stdout)
		}
	})
}

// Run needs no running service. A running one ends the streams of an ended session within seconds.
func (c *userSessions) Run(ctx context.Context, p *Program) error {
	var session protocol.SessionID
	if c.End != "" {
		if err := session.UnmarshalText([]byte(c.End)); err != nil {
			return fmt.Errorf("%s %w", c.End, err)
		}
	}
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		switch {
		case c.EndAll:
			err := users.SignOutAll(ctx, db, c.Account)
			if err == nil {
				_, err = fmt.Fprintf(p.Stdout, "The account %s is signed out on all devices.\n", c.Account)
			}
			return err
		case c.End != "":
			err := users.SignOut(ctx, db, c.Account, session)
			if err == nil {
				_, err = fmt.Fprintf(p.Stdout, "The session %s has ended.\n", c.End)
			}
			return err
		}
		devices, err := users.Devices(ctx, db, c.Account)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return users.PrintJSON(p.Stdout, devices)
		default:
			return users.PrintDevices(p.Stdout, devices)
		}
	})
}

// Run needs no running service: the next one that runs continues the erasure. It prints the report as JSON.
func (c *userErase) Run(ctx context.Context, p *Program) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		id, err := users.Erase(ctx, db, c.Account, c.Confirm)
		if err != nil {
			return err
		}
		return p.printErasure(ctx, db, id)
	})
}

// Run prints the report as JSON.
func (c *userErasure) Run(ctx context.Context, p *Program) error {
	var id protocol.ErasureID
	if err := id.UnmarshalText([]byte(c.Erasure)); err != nil {
		return fmt.Errorf("%s %w", c.Erasure, err)
	}
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		return p.printErasure(ctx, db, id)
	})
}

func (p *Program) printErasure(ctx context.Context, db *persistence.Stores, id protocol.ErasureID) error {
	report, err := db.Erasures.Erasure(ctx, id)
	if err != nil {
		return err
	}
	return users.PrintJSON(p.Stdout, report)
}

// Run prints the password if it generated one.
func (c *userAdd) Run(ctx context.Context, p *Program) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		password, made, err := c.read(p.Stdin)
		if err != nil {
			return err
		}
		if _, err := users.Add(ctx, db, c.Email, c.Name, password); err != nil {
			return err
		}
		return p.printPassword("The account "+c.Email+" was created.", password, made)
	})
}

// Run needs no running service. A running service ends the streams and the turns of the account within seconds; a
// service that starts later does so then.
func (c *userDisable) Run(ctx context.Context, p *Program) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		if err := users.Disable(ctx, db, c.Account); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "The account %s is disabled.\n", c.Account)
		return err
	})
}

// Run does not release what is held in the account's queues.
func (c *userEnable) Run(ctx context.Context, p *Program) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		if err := users.Enable(ctx, db, c.Account); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "The account %s is enabled.\n", c.Account)
		return err
	})
}

// Run prints the password if it generated one.
func (c *userPassword) Run(ctx context.Context, p *Program) error {
	return p.WithDatabase(ctx, func(db *persistence.Stores) error {
		password, made, err := c.read(p.Stdin)
		if err != nil {
			return err
		}
		if err := users.SetPassword(ctx, db, c.Account, password); err != nil {
			return err
		}
		return p.printPassword("The account "+c.Account+" has a new password.", password, made)
	})
}

func (o passwordOptions) read(input io.Reader) (password string, made bool, err error) {
	if !o.PasswordStdin {
		return settings.RandomText(PasswordBytes), true, nil
	}
	line, err := bufio.NewReader(input).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), false, nil
}

func (p *Program) printPassword(done, password string, made bool) error {
	if made {
		done += " Its password is " + password
	}
	_, err := fmt.Fprintln(p.Stdout, done)
	return err
}
