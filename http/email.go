package http

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"turnstone/protocol"
)

const (
	maxEmailBytes       = 254 // RFC 5321
	maxDisplayNameRunes = 100
)

// EmailKey is how look-ups spell an address: two that differ only in case or in Unicode form are one.
func EmailKey(email string) string {
	return strings.ToLower(norm.NFKC.String(strings.TrimSpace(email)))
}

// checkEmail accepts an address without a name or comment around it.
func checkEmail(field, email string) error {
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Name != "" || parsed.Address != email || len(email) > maxEmailBytes || strings.ContainsFunc(email, unicode.IsControl) {
		return protocol.Invalid(field, "must be an e-mail address")
	}
	return nil
}

// CheckAccount refuses an invalid address or name and returns both trimmed. An empty name becomes the part of the address
// before the @.
func CheckAccount(email, displayName string) (string, string, error) {
	email, displayName = strings.TrimSpace(email), strings.TrimSpace(displayName)
	if err := checkEmail("body.email", email); err != nil {
		return "", "", err
	}
	if displayName == "" {
		return email, defaultName(email), nil
	}
	if utf8.RuneCountInString(displayName) > maxDisplayNameRunes || strings.ContainsFunc(displayName, unicode.IsControl) {
		return "", "", protocol.Invalid("body.display_name", "must have 1 to 100 characters")
	}
	return email, displayName, nil
}

// defaultName is the part of an address before the @, no longer than a name may be.
func defaultName(email string) string {
	name := []rune(email[:strings.LastIndexByte(email, '@')])
	return string(name[:min(len(name), maxDisplayNameRunes)])
}
