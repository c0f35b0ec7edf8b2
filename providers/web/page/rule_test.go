package page

import (
	"fmt"
	"strings"
	"testing"
)

func TestRobotsRulesAreThoseOfRFC9309(t *testing.T) {
	for _, c := range []struct {
		robots, allowed, refused string // addresses separated by spaces
	}{
		{"", "/ /a", ""},
		{"User-agent: *\nDisallow:", "/ /a", ""},
		{"User-agent: *\nDisallow: /", "/robots.txt", "/ /a"},
		{"user-AGENT : *\n disallow :/a\n", "/ /b", "/a /ab /a/b"},
		{"User-agent: *\nDisallow: /a # comment", "/b", "/a"},
		{"User-agent: *\r\nDisallow: /a\r\nAllow: /a/b\r\n", "/a/b /a/bc", "/a /a/c"},
		{"User-agent: *\rDisallow: /a\r", "/b", "/a"},
		{"\ufeffUser-agent: *\nDisallow: /a", "/b", "/a"},
		{"User-agent: *\nAllow: /a\nDisallow: /a", "/a", ""}, // of equal length
		{"User-agent: *\nDisallow: /a\nAllow: /a", "/a", ""},
		{"User-agent: *\nDisallow: /*.php$\nAllow: /public", "/a.php5 /a.php?x=1 /public", "/a.php /b/c.php"},
		{"User-agent: *\nAllow: /page\nDisallow: /*.htm", "/page", "/page.htm"}, // the pattern is longer
		{"User-agent: *\nAllow: /$\nDisallow: /", "/", "/a"},
		{"User-agent: *\nDisallow: /a*b*c", "/ab /acb", "/abc /axxbxxcx"},
		{"User-agent: *\nDisallow: *secret", "/public", "/secret /a/secret"},
		{"User-agent: *\nDisallow: /a$b", "/a", "/a$b"}, // $ within a pattern is a character
		{"User-agent: *\nDisallow: /%7Ejoe/", "/other", "/~joe/ /%7ejoe/ /%7Ejoe/x"},
		{"User-agent: *\nDisallow: /~joe/", "/other", "/%7Ejoe/"},
		{"User-agent: *\nDisallow: /ä", "/a", "/%C3%A4 /%c3%a4"},
		{"User-agent: *\nDisallow: /%2F", "//", "/%2f"}, // an encoded delimiter is not the delimiter
		{"User-agent: *\nDisallow: /a?b=1", "/a /a?b=2", "/a?b=1 /a?b=12"},
		{"User-agent: Turnstone\nDisallow: /a\n\nUser-agent: *\nDisallow: /", "/b", "/a"},
		{"User-agent: *\nDisallow: /\n\nUser-agent: turnSTONE/1.0\nDisallow: /a", "/b", "/a"},
		{"User-agent: Turnstone\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: turnstone\nDisallow: /c", "/b", "/a /c"}, // groups of one agent are one group
		{"User-agent: x\nUser-agent: Turnstone\nDisallow: /a", "/b", "/a"},
		{"User-agent: Turn\nDisallow: /\n", "/a", ""}, // another agent
		{"User-agent: Turnstones\nDisallow: /\n", "/a", ""},
		{"User-agent: x\nDisallow: /", "/a", ""},
		{"User-agent: Turnstone\nCrawl-delay: 5\n\nUser-agent: *\nDisallow: /", "", "/a"}, // an unknown line does not end the list of agents
		{"Disallow: /a\nUser-agent: *\nDisallow: /b", "/a", "/b"},                         // a rule before any group
		{"<html><body>Not found: *</body></html>", "/a", ""},
		{"User-agent: *\nnonsense\n: :\nDisallow /x\nSitemap: https://a.example/s.xml\nDisallow: /a", "/b /x", "/a"},
		{"User-agent: *\nDisallow: a", "/a", ""}, // not a path
		{"User-agent: *\nDisallow: /[a-z]+", "/a", "/[a-z]+"},
	} {
		rules := parseRules([]byte(c.robots))
		for want, list := range map[bool]string{true: c.allowed, false: c.refused} {
			for path := range strings.FieldsSeq(list) {
				if got := rules.allow(path); got != want {
					t.Errorf("%q: %s is %t", c.robots, path, got)
				}
			}
		}
	}
}

func TestHostileRobotsRulesAreBounded(t *testing.T) {
	var many strings.Builder
	many.WriteString("User-agent: *\n")
	for i := range 100_000 {
		fmt.Fprintf(&many, "Disallow: /%d\n", i)
	}
	if rules := parseRules([]byte(many.String())); len(rules) > maxRules || rules.allow("/1") {
		t.Errorf("%d rules", len(rules))
	}
	stars := "User-agent: *\nDisallow: /" + strings.Repeat("*a", 1000) + "b"
	if !parseRules([]byte(stars)).allow("/" + strings.Repeat("a", 4000)) { // would take hours if each star tried every position
		t.Error("refused")
	}
}
