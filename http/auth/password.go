package auth

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

// Bounds of a password. There is no rule about kinds of characters: only the length matters, and that the password is
// not a common one.
const (
	maxPasswordBytes = 1024
)

// defaultCost is the cost that OWASP recommends: 19 MiB, two passes, one lane. A hash takes about 50 ms.
var defaultCost = &argon2id.Params{Memory: 19456, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

//go:embed password_common.txt
var commonPasswordText string

var commonPasswords = func() map[string]bool {
	common := map[string]bool{}
	for word := range strings.Lines(commonPasswordText) {
		common[strings.TrimSpace(word)] = true
	}
	return common
}()

// passwords hashes and compares passwords. It limits the number of concurrent hashes.
type passwords struct {
	slots *hashSlots
	cost  *argon2id.Params
	dummy string // the hash to compare with if an account has none, so that the comparison takes the same time
}

func newPasswords(cost *argon2id.Params) (*passwords, error) {
	dummy, err := argon2id.CreateHash(protocol.NewSessionID().String(), cost)
	if err != nil {
		return nil, fmt.Errorf("hashing a password: %w", err)
	}
	return &passwords{slots: newHashSlots(), cost: cost, dummy: dummy}, nil
}

// matches reports whether hash is a hash of the password. Without a hash, it takes the same time and returns false.
func (p *passwords) matches(ctx context.Context, caller hashCaller, password string, hash *string) (bool, error) {
	release, err := p.slots.acquire(ctx, caller)
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

func (p *passwords) hash(ctx context.Context, caller hashCaller, password string) (string, error) {
	release, err := p.slots.acquire(ctx, caller)
	if err != nil {
		return "", err
	}
	defer release()
	return argon2id.CreateHash(normalPassword(password), p.cost)
}

// HashPassword checks a new password and returns its hash. It is for operators' commands; requests use a Service,
// which limits the number of concurrent hashes.
func HashPassword(password, email string) (string, error) {
	if err := checkPassword("password", password, email); err != nil {
		return "", err
	}
	return argon2id.CreateHash(normalPassword(password), defaultCost)
}

// normalPassword converts a password to NFKC, because systems encode the same typed text differently.
func normalPassword(password string) string { return norm.NFKC.String(password) }

// checkPassword refuses a new password that is too short, too long or easy to guess. field is the name of the field in
// the request.
func checkPassword(field, password, email string) error {
	normal := strings.ToLower(normalPassword(password))
	name, _, _ := strings.Cut(strings.ToLower(email), "@")
	switch {
	case utf8.RuneCountInString(password) < protocol.MinPassword:
		return protocol.Invalid(field, "must have at least 8 characters; 15 or more are better")
	case len(password) > maxPasswordBytes:
		return protocol.Invalid(field, "must have at most 1024 bytes")
	case commonPasswords[normal], strings.Count(normal, normal[:1]) == len(normal):
		return protocol.Invalid(field, "is too common")
	case normal == strings.ToLower(email) || normal == name:
		return protocol.Invalid(field, "must not be the email address")
	}
	return nil
}
