package settings

import (
	"encoding"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	modelapi "turnstone/providers/model"
	"turnstone/providers/outbound"
)

// Rate limits how often something may happen: Count times within Per, and at most Burst times at once.
type Rate struct {
	Count int
	Per   time.Duration
	Burst int
}

var _ encoding.TextUnmarshaler = (*Rate)(nil)

// UnmarshalText parses "30/1m burst 10". Without a burst, Burst equals Count.
func (r *Rate) UnmarshalText(text []byte) error {
	invalid := fmt.Errorf(`invalid rate %q (want for example "30/1m burst 10")`, text)
	fields := strings.Fields(string(text))
	if len(fields) != 1 && (len(fields) != 3 || fields[1] != "burst") {
		return invalid
	}
	count, per, found := strings.Cut(fields[0], "/")
	if !found {
		return invalid
	}
	if !strings.ContainsAny(per[:min(1, len(per))], "0123456789") {
		per = "1" + per // 30/m
	}
	parsed := Rate{}
	var err error
	if parsed.Count, err = strconv.Atoi(count); err != nil {
		return invalid
	}
	if parsed.Per, err = time.ParseDuration(per); err != nil {
		return invalid
	}
	parsed.Burst = parsed.Count
	if len(fields) == 3 {
		if parsed.Burst, err = strconv.Atoi(fields[2]); err != nil {
			return invalid
		}
	}
	if parsed.Count < 1 || parsed.Burst < 1 || parsed.Per <= 0 {
		return invalid
	}
	*r = parsed
	return nil
}

func (r Rate) String() string {
	return fmt.Sprintf("%d/%s burst %d", r.Count, duration(r.Per), r.Burst)
}

// duration is a time.Duration whose String omits zero minutes and seconds: 15m instead of 15m0s.
type duration time.Duration

// UnmarshalText parses a non-negative duration, for example "25s".
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf("invalid duration %q (want for example 25s)", text)
	}
	*d = duration(parsed)
	return nil
}

func (d duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// httpURL is an origin: scheme and host, without a path.
type httpURL struct{ *url.URL }

// UnmarshalText parses an origin, for example https://chat.example.org. It accepts one trailing slash.
func (u *httpURL) UnmarshalText(text []byte) error {
	parsed, err := parseOrigin(strings.TrimSuffix(string(text), "/"))
	if err != nil {
		return err
	}
	u.URL = parsed
	return nil
}

func (u httpURL) String() string {
	if u.URL == nil {
		return ""
	}
	return u.URL.String()
}

func parseOrigin(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" ||
		parsed.Scheme+"://"+parsed.Host != text {
		return nil, fmt.Errorf("invalid origin %q (want for example https://chat.example.org)", text)
	}
	return parsed, nil
}

// origins are exact origins; "*" and "null" are refused.
type origins []string

// UnmarshalText parses origins separated by commas.
func (o *origins) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if _, err := parseOrigin(one); err != nil {
			return err
		}
		*o = append(*o, one)
	}
	return nil
}

func (o origins) String() string { return strings.Join(o, ",") }

// hostNames are host names without a port or a wildcard.
type hostNames []string

var hostName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// UnmarshalText parses names separated by commas.
func (h *hostNames) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if !hostName.MatchString(one) {
			return fmt.Errorf("invalid host name %q (want a name without a port, for example metrics.example.org)", one)
		}
		*h = append(*h, one)
	}
	return nil
}

func (h hostNames) String() string { return strings.Join(h, ",") }

// prefixes are IP networks.
type prefixes []netip.Prefix

// UnmarshalText parses CIDRs and single addresses, separated by commas.
func (p *prefixes) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if address, err := netip.ParseAddr(one); err == nil {
			*p = append(*p, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(one)
		if err != nil {
			return fmt.Errorf("invalid network %q (want for example 10.0.0.0/8)", one)
		}
		*p = append(*p, prefix)
	}
	return nil
}

func (p prefixes) String() string {
	var list []string
	for _, one := range p {
		list = append(list, one.String())
	}
	return strings.Join(list, ",")
}

// The values of a switch.
const (
	On  = "on"
	Off = "off"
)

// The search providers.
const (
	SearXNG = "searxng"
	Brave   = "brave"
	Tavily  = "tavily"
	Bundled = "bundled"
)

// searchProviders are search providers in the order in which they are asked.
type searchProviders []string

// UnmarshalText parses names separated by commas.
func (p *searchProviders) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if !slices.Contains([]string{SearXNG, Brave, Tavily, Bundled}, one) {
			return fmt.Errorf("invalid search provider %q (want searxng, brave, tavily or bundled)", one)
		}
		if slices.Contains(*p, one) {
			return fmt.Errorf("the search provider %s is listed twice", one)
		}
		*p = append(*p, one)
	}
	return nil
}

func (p searchProviders) String() string { return strings.Join(p, ",") }

// webAllow is what may be read although it is not public.
type webAllow struct {
	outbound.Allowed
	list []string
}

// UnmarshalText parses hosts and networks separated by commas.
func (a *webAllow) UnmarshalText(text []byte) (err error) {
	a.list = splitList(string(text))
	a.Allowed, err = outbound.ParseAllowed(a.list)
	return err
}

func (a webAllow) String() string { return strings.Join(a.list, ",") }

// Secrets holds one value, or two during a rotation. The first value signs.
type Secrets [][]byte

// UnmarshalText parses one value, or two separated by a comma. Its errors never contain a value.
func (s *Secrets) UnmarshalText(text []byte) error {
	list := splitList(string(text))
	if len(list) < 1 || len(list) > maxSecrets {
		return fmt.Errorf("it has %d values (want one, or two during a rotation)", len(list))
	}
	for _, one := range list {
		distinct := map[rune]bool{}
		for _, c := range one {
			distinct[c] = true
		}
		if len(one) < minSecret || len(distinct) < minDistinct {
			return fmt.Errorf("a value is too short or too simple: use at least %d random bytes (openssl rand -base64 48)", minSecret)
		}
		*s = append(*s, []byte(one))
	}
	return nil
}

// String hides the values, so that no format verb shows them by mistake.
func (s Secrets) String() string { return mask(len(s) > 0) }

// modelHeaders are additional headers for requests to the model provider.
type modelHeaders struct{ http.Header }

// UnmarshalText parses lines of the form "Name: value". Its errors never contain a value.
func (h *modelHeaders) UnmarshalText(text []byte) (err error) {
	h.Header, err = modelapi.ParseHeaders(string(text))
	return err
}

// String hides the values, which may be secret.
func (h modelHeaders) String() string { return mask(len(h.Header) > 0) }

func mask(set bool) string {
	if set {
		return "[set]"
	}
	return ""
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r' })
}
