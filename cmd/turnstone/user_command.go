package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/users"
	"turnstone/persistence"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

type userCommand struct {
	List     userListCommand     `cmd:"" help:"List accounts, in the order of their creation."`
	Show     userShowCommand     `cmd:"" help:"Show the state of an account, how it signs in and how much it has. Nothing that users wrote is shown."`
	Sessions userSessionsCommand `cmd:"" help:"List the devices on which an account is signed in, or sign out one or all of them."`
	Add      userAddCommand      `cmd:"" help:"Create an account."`
	Disable  userDisableCommand  `cmd:"" help:"Disable an account: end its sessions, cancel its live turns and hold its queues. Nothing is deleted."`
	Enable   userEnableCommand   `cmd:"" help:"Let a disabled account sign in again. Held follow-ups stay held."`
	Password userPasswordCommand `cmd:"" help:"Give an account a new password and end its sessions."`
	Erase    userEraseCommand    `cmd:"" help:"Erase an account and everything in it, as the account itself can. This cannot be undone."`
	Erasure  userErasureCommand  `cmd:"" help:"Show how much the erasure of an account has deleted."`
}

// passwordOptions select the source of a password. The command line is not one of them, because other users of the
// machine can see it.
type passwordOptions struct {
	PasswordStdin bool `help:"Read the password from the first line of standard input. Unset: a password is generated and printed."`
}

type userListCommand struct {
	Limit uint   `default:"100" help:"Print at most so many accounts. 0: all."`
	After string `help:"Start after the account with this identifier (acct_…)."`
	JSON  bool   `name:"json" help:"Print one JSON object per account and line."`
}

type userShowCommand struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

type userSessionsCommand struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	End     string `xor:"end" help:"Sign out the device with this session (sess_…)."`
	EndAll  bool   `xor:"end" help:"Sign out all devices."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

type userEraseCommand struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	Confirm string `required:"" help:"The email address of the account or, if it has none, its identifier, to confirm that it is the one to erase."`
}

type userAddCommand struct {
	Email string `arg:"" help:"Email address to sign in with."`
	Name  string `help:"Display name. Unset: the part of the address before the @."`
	passwordOptions
}

type userDisableCommand struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
}

type userEnableCommand struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
}

type userPasswordCommand struct {
	Account string `arg:"" help:"Email address or identifier (acct_…) of the account."`
	passwordOptions
}

type userErasureCommand struct {
	Erasure string `arg:"" help:"Identifier (era_…) from the response to the erasure."`
}

// Run prints accounts on stdout. If there are more than the limit, it says on stderr how to continue.
func (c *userListCommand) Run(ctx context.Context, p *program) error {
	var after protocol.AccountID
	if c.After != "" {
		if err := after.UnmarshalText([]byte(c.After)); err != nil {
			return fmt.Errorf("%s %w", c.After, err)
		}
	}
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		more, err := users.List(ctx, db, p.stdout, after, int(c.Limit), c.JSON) //nolint:gosec // a limit that overflows is negative and means all
		if err == nil && more != nil {
			_, err = fmt.Fprintf(p.stderr, "There are more accounts: --after %s\n", more)
		}
		return err
	})
}

// Run prints an account in any state.
func (c *userShowCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		shown, err := users.Show(ctx, db, c.Account)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return users.PrintJSON(p.stdout, shown)
		default:
			return shown.Print(p.stdout)
		}
	})
}

// Run needs no running service. A running one ends the streams of an ended session within seconds.
func (c *userSessionsCommand) Run(ctx context.Context, p *program) error {
	var session protocol.SessionID
	if c.End != "" {
		if err := session.UnmarshalText([]byte(c.End)); err != nil {
			return fmt.Errorf("%s %w", c.End, err)
		}
	}
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		switch {
		case c.EndAll:
			err := users.SignOutAll(ctx, db, c.Account)
			if err == nil {
				_, err = fmt.Fprintf(p.stdout, "The account %s is signed out on all devices.\n", c.Account)
			}
			return err
		case c.End != "":
			err := users.SignOut(ctx, db, c.Account, session)
			if err == nil {
				_, err = fmt.Fprintf(p.stdout, "The session %s has ended.\n", c.End)
			}
			return err
		}
		devices, err := users.Devices(ctx, db, c.Account)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return users.PrintJSON(p.stdout, devices)
		default:
			return users.PrintDevices(p.stdout, devices)
		}
	})
}

// Run needs no running service: the next one that runs continues the erasure. It prints the report as JSON.
func (c *userEraseCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		id, err := users.Erase(ctx, db, c.Account, c.Confirm)
		if err != nil {
			return err
		}
		return p.printErasure(ctx, db, id)
	})
}

// Run prints the report as JSON.
func (c *userErasureCommand) Run(ctx context.Context, p *program) error {
	var id protocol.ErasureID
	if err := id.UnmarshalText([]byte(c.Erasure)); err != nil {
		return fmt.Errorf("%s %w", c.Erasure, err)
	}
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		return p.printErasure(ctx, db, id)
	})
}

func (p *program) printErasure(ctx context.Context, db *persistence.Stores, id protocol.ErasureID) error {
	report, err := db.Erasures.Erasure(ctx, id)
	if err != nil {
		return err
	}
	return users.PrintJSON(p.stdout, report)
}

// Run prints the password if it generated one.
func (c *userAddCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		password, made, err := c.read(p.stdin)
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
func (c *userDisableCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		if err := users.Disable(ctx, db, c.Account); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "The account %s is disabled.\n", c.Account)
		return err
	})
}

// Run does not release what is held in the account's queues.
func (c *userEnableCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		if err := users.Enable(ctx, db, c.Account); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "The account %s is enabled.\n", c.Account)
		return err
	})
}

// Run prints the password if it generated one.
func (c *userPasswordCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		password, made, err := c.read(p.stdin)
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
		return randomText(passwordBytes), true, nil
	}
	line, err := bufio.NewReader(input).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), false, nil
}

func (p *program) printPassword(done, password string, made bool) error {
	if made {
		done += " Its password is " + password
	}
	_, err := fmt.Fprintln(p.stdout, done)
	return err
}

// withDatabase opens the configured Postgres, or the private one of the data folder, for the duration of one command.
func (p *program) withDatabase(ctx context.Context, work func(*persistence.Stores) error) error {
	config, _, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return err
	}
	url, done, err := p.databaseURL(ctx, &config)
	if err != nil {
		return err
	}
	defer done()
	db, err := persistence.Open(ctx, persistence.Config{URL: url, Logger: newLogger(p.stderr, config.Service.LogLevel, true)})
	if err != nil {
		return err
	}
	defer db.Close()
	return work(db)
}

// databaseURL returns the configured URL or, if there is none, that of the data folder's private Postgres: the server
// of a running dev, or one that is started for this command. done releases what was started.
func (p *program) databaseURL(ctx context.Context, config *settings.Config) (url string, done func(), err error) {
	if config.Stores.DatabaseURL != "" {
		return config.Stores.DatabaseURL, func() {}, nil
	}
	folder, err := openFolder(config.Service.DataDir)
	ofDev := errors.Is(err, embedded.ErrLocked)
	if err != nil && !ofDev {
		return "", nil, err
	}
	server, err := startDatabase(ctx, filepath.Join(config.Service.DataDir, "postgres"), zap.NewNop())
	done = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server != nil {
			_ = server.Close(ctx) // the server ends with this process in any case
		}
		if folder != nil {
			_ = folder.close() // the lock ends with this process, too
		}
	}
	switch {
	case err != nil:
	case ofDev && server.Owned():
		err = errors.New("the turnstone that uses the data folder has its database elsewhere")
	default:
		return server.DSN(privateLogin, privateDatabase), done, nil
	}
	done()
	return "", nil, fmt.Errorf("DATABASE_URL is not set: %w", err)
}
