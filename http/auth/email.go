package auth

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"turnstone/protocol"
)

const (
	maxEmailBytes    = 254  // RFC 5321
	maxEmailKeyBytes = 2048 // some characters are many in the form of EmailKey
)

// EmailKey returns the form of an address that lookups use. Addresses that differ only in case or in Unicode form have
// the same key.
func EmailKey(email string) string {
	return strings.ToLower(norm.NFKC.String(strings.TrimSpace(email)))
}

// checkEmail accepts an address only if it has no display name and no comment.
func checkEmail(field, email string) error {
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Name != "" || parsed.Address != email || len(email) > maxEmailBytes || len(EmailKey(email)) > maxEmailKeyBytes || strings.ContainsFunc(email, unicode.IsControl) {
		return protocol.Invalid(field, "must be an email address")
	}
	return nil
}

// CheckAccount trims and checks the address and the display name of an account. An empty name becomes the part of the
// address before the @.
func CheckAccount(email, displayName string) (string, string, error) {
	email, displayName = strings.TrimSpace(email), strings.TrimSpace(displayName)
	if err := checkEmail("body.email", email); err != nil {
		return "", "", err
	}
	if displayName == "" {
		return email, defaultName(email), nil
	}
	return email, displayName, checkName(displayName)
}

// checkName refuses a trimmed display name that is empty, too long or has control characters.
func checkName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > protocol.MaxDisplayName || strings.ContainsFunc(name, unicode.IsControl) {
		return protocol.Invalid("body.display_name", "must have 1 to 100 characters")
	}
	return nil
}

// defaultName returns the part of an address before the @, cut to the longest name that is allowed.
func defaultName(email string) string {
	name := []rune(email[:strings.LastIndexByte(email, '@')])
	return string(name[:min(len(name), protocol.MaxDisplayName)])
}
