package evidence

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// address is an address whose parts have their normal form.
type address struct {
	host     string
	path     string // escaped; "" for the root
	query    []parameter
	fragment string // empty, or begins with "!"
}

// parameter is a part of a query, escaped.
type parameter struct{ key, value string }

func parseAddress(raw string) (*address, bool) {
	raw = strings.TrimSpace(raw)
	if strings.HasPrefix(raw, "//") {
		raw = "https:" + raw
	}
	if len(raw) > maxAddress {
		return nil, false
	}
	u, err := url.Parse(raw)
	if err != nil || !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https") {
		return nil, false
	}
	host, ok := canonicalHost(u)
	if !ok {
		return nil, false
	}
	page := &address{host: host, path: canonicalPath(u.EscapedPath()), query: parseQuery(u.RawQuery)}
	if strings.HasPrefix(u.EscapedFragment(), "!") {
		page.fragment = escapeNormally(u.EscapedFragment())
	}
	return page, true
}

// canonicalHost returns the host of an address in ASCII, without the labels of variants and without the default port.
func canonicalHost(u *url.URL) (string, bool) {
	name := strings.TrimRight(strings.ToLower(u.Hostname()), ".")
	if !strings.Contains(name, ":") { // not an IPv6 address
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", false
		}
		name = withoutVariant(ascii)
	} else {
		name = "[" + name + "]"
	}
	if name == "" || name[0] == '.' || strings.Contains(name, "..") {
		return "", false
	}
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		name += ":" + port
	}
	return name, true
}

// withoutVariant removes the labels of mobile and other variants of a host. What remains is never a public suffix: m.co.uk and
// amp.github.io are sites of their own.
func withoutVariant(host string) string {
	for {
		label, rest, _ := strings.Cut(host, ".")
		if label != "www" && label != "m" && label != "amp" && label != "mobile" {
			break
		}
		if suffix, _ := publicsuffix.PublicSuffix(rest); !strings.Contains(rest, ".") || suffix == rest {
			break
		}
		host = rest
	}
	for _, project := range []string{".m.wikipedia.org", ".m.wikimedia.org", ".m.wiktionary.org", ".m.wikivoyage.org", ".m.wikinews.org", ".m.wikisource.org"} {
		if language, is := strings.CutSuffix(host, project); is {
			return language + project[len(".m"):]
		}
	}
	return host
}

// canonicalPath returns an escaped path without dot segments, empty segments, names of index files and suffixes of variants.
func canonicalPath(escaped string) string {
	clean := path.Clean("/" + escapeNormally(escaped))
	if at := strings.Index(clean, ";jsessionid="); at >= 0 {
		clean = clean[:at]
	}
	for {
		dir, name := path.Split(clean)
		switch {
		case slices.Contains(indexNames, strings.ToLower(name)):
		case slices.Contains(variantNames, strings.ToLower(name)) && isSlug(path.Base(dir)):
		default:
			return strings.TrimSuffix(clean, "/")
		}
		clean = path.Clean(dir)
	}
}

// isSlug reports whether a segment of a path is the name of an article. Only after one, "/amp" is a variant: it may also be the
// name of a repository or of a category.
func isSlug(segment string) bool {
	if strings.Count(segment, "-") >= 2 || strings.Count(segment, "_") >= 2 || strings.HasSuffix(segment, ".html") {
		return true
	}
	digits := 0
	for i := len(segment); i > 0 && '0' <= segment[i-1] && segment[i-1] <= '9'; i-- {
		digits++
	}
	return digits >= 4
}

// escapeNormally returns a part of an address in which exactly those bytes are escaped that have to be.
func escapeNormally(escaped string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		c, plain := escaped[i], true
		if c == '%' && i+2 < len(escaped) && isHex(escaped[i+1]) && isHex(escaped[i+2]) {
			c, plain = unhex(escaped[i+1])<<4|unhex(escaped[i+2]), false
			i += 2
		}
		if unreserved(c) || plain && c != '%' && c > ' ' && c < 0x7f && !strings.ContainsRune("\"<>\\^`{|}", rune(c)) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func parseQuery(raw string) (query []parameter) {
	for part := range strings.SplitSeq(raw, "&") {
		key, value, _ := strings.Cut(strings.ReplaceAll(part, "+", "%20"), "=")
		if key != "" {
			query = append(query, parameter{escapeNormally(key), escapeNormally(value)})
		}
	}
	slices.SortStableFunc(query, func(a, b parameter) int { return strings.Compare(a.key, b.key) })
	return query
}

// get returns a parameter, unescaped.
func (a *address) get(key string) string {
	for _, p := range a.query {
		if p.key == key {
			value, err := url.PathUnescape(p.value)
			if err != nil {
				return ""
			}
			return value
		}
	}
	return ""
}

var (
	indexNames   = []string{"index.html", "index.htm", "index.php", "index.xhtml", "index.shtml", "index.jsp", "index.asp", "index.aspx", "default.html", "default.htm", "default.asp", "default.aspx"}
	variantNames = []string{"amp", "amp.html", "print", "printable"}
)
