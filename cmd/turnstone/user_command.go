package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

type userCommand struct {
	Add      userAddCommand      `cmd:"" help:"Create an account."`
	Disable  userDisableCommand  `cmd:"" help:"Disable an account: end its sessions, cancel its live turns and hold its queues. Nothing is deleted."`
	Enable   userEnableCommand   `cmd:"" help:"Let a disabled account sign in again. Held follow-ups stay held."`
	Password userPasswordCommand `cmd:"" help:"Give an account a new password and end its sessions."`
	Erasure  userErasureCommand  `cmd:"" help:"Show how much the erasure of an account has deleted."`
}

// passwordOptions select the source of a password. The command line is not one of them, because other users of the
// machine can see it.
type passwordOptions struct {
	PasswordStdin bool `help:"Read the password from the first line of standard input. Unset: a password is generated and printed."`
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

// Run prints the report as JSON.
func (c *userErasureCommand) Run(ctx context.Context, p *program) error {
	var id protocol.ErasureID
	if err := id.UnmarshalText([]byte(c.Erasure)); err != nil {
		return fmt.Errorf("%s %w", c.Erasure, err)
	}
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		report, err := db.Erasures.Erasure(ctx, id)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%s\n", text)
		}
		return err
	})
}

// Run prints the password if it generated one.
func (c *userAddCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		password, made, err := c.read(p.stdin)
		if err != nil {
			return err
		}
		if _, err := addAccount(ctx, db, c.Email, c.Name, password); err != nil {
			return err
		}
		return p.printPassword("The account "+c.Email+" was created.", password, made)
	})
}

// Run needs no running service. A running service ends the streams and the turns of the account within seconds; a
// service that starts later does so then.
func (c *userDisableCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		if err := disableAccount(ctx, db, c.Account); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "The account %s is disabled.\n", c.Account)
		return err
	})
}

// Run does not release what is held in the account's queues.
func (c *userEnableCommand) Run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(db *persistence.Stores) error {
		if err := enableAccount(ctx, db, c.Account); err != nil {
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
		if err := setPassword(ctx, db, c.Account, password); err != nil {
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
