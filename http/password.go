package http

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"

	"turnstone/protocol"
)

// Bounds of a password. There is no rule about kinds of characters: length and rarity are what counts.
const (
	minPasswordRunes = 8
	maxPasswordBytes = 1024
)

// argonParams are OWASP's: 19 MiB, two passes, one lane; about 50 ms.
var argonParams = &argon2id.Params{Memory: 19456, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

//go:embed password_common.txt
var commonPasswordText string

var commonPasswords = func() map[string]bool {
	common := map[string]bool{}
	for word := range strings.Lines(commonPasswordText) {
		common[strings.TrimSpace(word)] = true
	}
	return common
}()

// passwords hashes within bounds.
type passwords struct {
	slots *hashSlots
	dummy string // what the password of an unknown account is compared with, so that it takes the same time
}

func newPasswords() (*passwords, error) {
	dummy, err := argon2id.CreateHash(protocol.NewSessionID().String(), argonParams)
	if err != nil {
		return nil, fmt.Errorf("hashing: %w", err)
	}
	return &passwords{slots: newHashSlots(), dummy: dummy}, nil
}

// matches compares a password with a hash; with none it takes as long and is false.
func (p *passwords) matches(ctx context.Context, who hasher, password string, hash *string) (bool, error) {
	release, err := p.slots.acquire(ctx, who)
	if err != nil {
		return false, err
	}
	defer release()
	against := &p.dummy
	if hash != nil {
		against = hash
	}
	same, err := argon2id.ComparePasswordAndHash(normalPassword(password), *against)
	if err != nil {
		return false, fmt.Errorf("comparing a password: %w", err)
	}
	return same && hash != nil, nil
}

func (p *passwords) hash(ctx context.Context, who hasher, password string) (string, error) {
	release, err := p.slots.acquire(ctx, who)
	if err != nil {
		return "", err
	}
	defer release()
	return argon2id.CreateHash(normalPassword(password), argonParams)
}

// HashPassword checks a new password and makes what is stored of it. It is for operators' commands; requests go through
// a Server, which bounds how many hashes run at once.
func HashPassword(password, email string) (string, error) {
	if err := checkPassword("password", password, email); err != nil {
		return "", err
	}
	return argon2id.CreateHash(normalPassword(password), argonParams)
}

// normalPassword makes the same password of the same keys on every system.
func normalPassword(password string) string { return norm.NFKC.String(password) }

// checkPassword refuses a new password that is too easy. field is how the request calls it.
func checkPassword(field, password, email string) error {
	normal := strings.ToLower(normalPassword(password))
	name, _, _ := strings.Cut(strings.ToLower(email), "@")
	switch {
	case utf8.RuneCountInString(password) < minPasswordRunes:
		return protocol.Invalid(field, "must have at least 8 characters; 15 or more are better")
	case len(password) > maxPasswordBytes:
		return protocol.Invalid(field, "must have at most 1024 bytes")
	case commonPasswords[normal], strings.Count(normal, normal[:1]) == len(normal):
		return protocol.Invalid(field, "is one of the first that anybody would try")
	case normal == strings.ToLower(email) || normal == name:
		return protocol.Invalid(field, "must not be the e-mail address")
	}
	return nil
}
