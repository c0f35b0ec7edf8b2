package page

import (
	"bytes"
	"net/url"
	"strings"
)

// agent is the product token by which robots.txt files may name this service.
const agent = "turnstone"

// The limits of a robots.txt file. RFC 9309 asks for at least 500 kB.
const (
	maxRobots = 500 << 10
	maxRules  = 5000
)

// rule is an Allow or Disallow line of a robots.txt file.
type rule struct {
	pattern string
	allow   bool
}

// rules are the lines of a robots.txt file for this service.
type rules []rule

// parseRules reads a robots.txt file as RFC 9309 says: the groups that name the agent count together, and only without one
// those for every agent. Lines that are not understood are ignored.
func parseRules(file []byte) rules {
	var ours, all rules
	named := false // a group names the agent
	var forUs, forAll, inRules bool
	file = bytes.TrimPrefix(file[:min(len(file), maxRobots)], []byte("\ufeff"))
	for _, line := range bytes.FieldsFunc(file, func(c rune) bool { return c == '\n' || c == '\r' }) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		key, value, found := strings.Cut(string(line), ":")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent":
			if inRules {
				forUs, forAll, inRules = false, false, false
			}
			token, _, _ := strings.Cut(strings.ToLower(value), "/")
			forUs, forAll = forUs || token == agent, forAll || token == "*"
			named = named || forUs
		case "allow", "disallow":
			inRules = true
			if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "*") {
				continue // an empty one has no effect
			}
			one := rule{normalized(value), key == "allow"}
			if forUs && len(ours) < maxRules {
				ours = append(ours, one)
			}
			if forAll && len(all) < maxRules {
				all = append(all, one)
			}
		}
	}
	if named {
		return ours
	}
	return all
}

// allow reports whether a path with its query may be read. The longest rule decides; of two equally long ones, the one that
// allows.
func (r rules) allow(path string) bool {
	if path == "/robots.txt" {
		return true
	}
	path = normalized(path)
	longest, allowed := -1, true
	for _, one := range r {
		if n := len(one.pattern); (n > longest || n == longest && one.allow) && matches(one.pattern, path) {
			longest, allowed = n, one.allow
		}
	}
	return allowed
}

// matches reports whether a path begins as a pattern says. Of the pieces between stars, each is looked for once.
func matches(pattern, path string) bool {
	pattern, toEnd := strings.CutSuffix(pattern, "$")
	pieces := strings.Split(pattern, "*")
	rest, found := strings.CutPrefix(path, pieces[0])
	if !found {
		return false
	}
	for i, piece := range pieces[1:] {
		if toEnd && i == len(pieces)-2 {
			return strings.HasSuffix(rest, piece)
		}
		at := strings.Index(rest, piece)
		if at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return !toEnd || rest == ""
}

// normalized returns a path or a pattern in which a character is encoded if and only if it must be, with capital digits.
func normalized(path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c, encoded := path[i], false
		if c == '%' && i+2 < len(path) {
			if decoded, err := url.PathUnescape(path[i : i+3]); err == nil {
				c, encoded = decoded[0], true
				i += 2
			}
		}
		switch unreserved := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0; {
		case unreserved || !encoded && c < 0x80:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
