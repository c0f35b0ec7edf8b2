package main

import (
	"net/http"
	"regexp"
	"testing"

	"turnstone/cmd/turnstone/dev"
	"turnstone/cmd/turnstone/sitetest"
)

func TestMain(m *testing.M) { sitetest.RunMain(m) }

var printedPassword = regexp.MustCompile(`password +(\S+)`)

func passwordOf(p *sitetest.Process) string {
	p.T.Helper()
	match := printedPassword.FindStringSubmatch(p.Stdout())
	if match == nil {
		p.T.Fatal("no password was printed")
	}
	return match[1]
}

// signIn returns a user who is signed in to an existing account.
func signIn(t *testing.T, base, email, password string) *sitetest.User {
	t.Helper()
	u := sitetest.NewGuest(t, base)
	if status := u.SignIn(t, email, password); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	return u
}

// signInToDemo signs in to the account of the demonstration.
func signInToDemo(t *testing.T, d *sitetest.DevInstallation, p *sitetest.Process) *sitetest.User {
	t.Helper()
	return signIn(t, "http://"+d.Public, dev.DemoEmail, passwordOf(p))
}

// newSignedUpUser creates an account on the installation and returns a user who is signed in to it.
func newSignedUpUser(t *testing.T, i *sitetest.ServeInstallation) *sitetest.User {
	t.Helper()
	const email = "grace@example.org"
	code, stdout, stderr := sitetest.Finish(t, i.Environment, "user", "add", email)
	if code != 0 {
		t.Fatalf("user add: %d %s", code, stderr)
	}
	return signIn(t, "http://"+i.Public, email, lastWord(stdout))
}
