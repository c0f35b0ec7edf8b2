package evidence

import (
	"strings"
)

const (
	// maxAddress is the longest address, in bytes, that has a canonical form. Browsers and servers refuse longer ones.
	maxAddress = 8 << 10
	// maxWrappers is how many addresses that contain the address of their target may be nested.
	maxWrappers = 4
)

// Canonical returns the canonical address of a web page, so that the same page under several addresses is one. The result
// identifies a page. It may not be fetched: a server may have only the address that was given.
func Canonical(raw string) (string, bool) {
	for range maxWrappers {
		page, ok := parseAddress(raw)
		if !ok {
			return "", false
		}
		target := page.target()
		if target == "" {
			return page.canonical(), true
		}
		raw = target
	}
	return "", false
}

// canonical returns the canonical form of an address that is no wrapper.
func (a *address) canonical() string {
	if known := a.known(); known != "" {
		return known
	}
	var b strings.Builder
	b.WriteString("https://" + a.host + a.path)
	separator := "?"
	for _, p := range a.query {
		if a.tracks(p) {
			continue
		}
		b.WriteString(separator + p.key)
		if p.value != "" {
			b.WriteString("=" + p.value)
		}
		separator = "&"
	}
	if a.fragment != "" {
		b.WriteString("#" + a.fragment)
	}
	return b.String()
}
