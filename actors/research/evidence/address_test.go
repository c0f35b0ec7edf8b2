package evidence

import (
	"strings"
	"testing"
)

func TestAddressesOfOnePageAreOne(t *testing.T) {
	for want, same := range map[string][]string{
		"https://example.com":                       {"http://example.com", "HTTPS://WWW.Example.COM:443/", "http://example.com:80/#top", "https://m.example.com/index.html", "//example.com/./a/..//", "https://example.com/?utm_source=x&fbclid=1#:~:text=a", "https://user:password@example.com./index.php"},
		"https://example.com/a/b?x=1&y=2":           {"https://example.com/a//b/?y=2&x=1", "https://example.com/a/b/index.htm?x=1&utm_campaign=q&y=2&gclid=3&mc_eid=4&ref=5", "https://amp.example.com/a/%62?x=1&y=2&amp=1", "https://www.example.com/a/b?x=1&y=2&print=1"},
		"https://example.com/%C3%A9t%C3%A9?q=a%20b": {"https://example.com/été?q=a+b", "https://example.com/%c3%a9t%c3%a9?q=a%20b"},
		"https://xn--bcher-kva.example/a":           {"https://bücher.example/a", "https://BÜCHER.example/a/", "https://xn--bcher-kva.example/a"},
		"https://example.com/app#!/page":            {"https://example.com/app#!/page"},
		"https://example.com/2024/05/a-long-title":  {"https://example.com/2024/05/a-long-title/amp/", "https://example.com/2024/05/a-long-title/print", "https://www.google.com/amp/s/example.com/2024/05/a-long-title/amp/", "https://example-com.cdn.ampproject.org/c/s/example.com/2024/05/a-long-title"},
		"https://example.com:8080/a":                {"http://example.com:8080/a"},
		"https://arxiv.org/abs/1706.03762":          {"http://arxiv.org/abs/1706.03762v5", "https://arxiv.org/pdf/1706.03762", "https://arxiv.org/pdf/1706.03762v7.pdf", "https://export.arxiv.org/abs/1706.03762", "https://arxiv.org/html/1706.03762v7", "https://doi.org/10.48550/arXiv.1706.03762"},
		"https://arxiv.org/abs/hep-th/9901001":      {"https://arxiv.org/pdf/hep-th/9901001v3"},
		"https://doi.org/10.1000/abc(1)2":           {"http://dx.doi.org/10.1000/ABC(1)2", "https://doi.org/10.1000/abc(1)2"},
		"https://en.wikipedia.org/wiki/Foo_bar":     {"https://en.m.wikipedia.org/wiki/Foo_bar#History", "http://en.wikipedia.org/wiki/Foo%20bar", "https://en.wikipedia.org/w/index.php?title=Foo_bar", "https://en.wikipedia.org/wiki/Foo_bar?useformat=mobile"},
		"https://youtube.com/watch?v=dQw4w9WgXcQ":   {"https://youtu.be/dQw4w9WgXcQ?si=x", "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=10s", "https://m.youtube.com/shorts/dQw4w9WgXcQ", "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ"},
		"https://example.com/x?a=1":                 {"https://www.google.com/url?sa=t&q=https%3A%2F%2Fexample.com%2Fx%3Fa%3D1&usg=z", "https://google.co.uk/url?url=https://example.com/x?a=1", "https://l.facebook.com/l.php?u=http%3A%2F%2Fexample.com%2Fx%3Fa%3D1%26fbclid%3D2&h=3", "https://duckduckgo.com/l/?uddg=https%3A%2F%2Fwww.example.com%2Fx%3Fa%3D1"},
		"https://github.com/a/amp":                  {"https://github.com/a/amp/"},
		"https://github.com/a/b/blob?ref=main":      {"https://github.com/a/b/blob?ref=main"},
		"https://m.co.uk/a":                         {"http://m.co.uk/a"},
		"https://gov.uk/a":                          {"https://gov.uk/a"},
		"https://amp.github.io/a":                   {"https://amp.github.io/a"},
		"https://[2001:db8::1]/a":                   {"http://[2001:DB8::1]:80/a"},
		"https://t.co/abc":                          {"https://t.co/abc"},
	} {
		for _, raw := range same {
			if got, ok := Canonical(raw); !ok || got != want {
				t.Errorf("%s: %s, want %s", raw, got, want)
			}
		}
	}
}

func TestAddressesOfOtherPagesAreNotOne(t *testing.T) {
	for _, pair := range [][2]string{
		{"https://example.com/a", "https://example.com/A"},
		{"https://example.com/a?page=1", "https://example.com/a?page=2"},
		{"https://example.com/a?a=1&a=2", "https://example.com/a?a=2&a=1"},
		{"https://example.com/a%2Fb", "https://example.com/a/b"},
		{"https://en.wikipedia.org/wiki/A", "https://de.wikipedia.org/wiki/A"},
		{"https://en.wikipedia.org/w/index.php?title=A&oldid=3", "https://en.wikipedia.org/wiki/A"},
		{"https://arxiv.org/abs/1706.03762", "https://arxiv.org/abs/1706.03763"},
		{"https://example.com/docs/amp", "https://example.com/docs"},
		{"https://a.github.io/x", "https://b.github.io/x"},
		{"https://example.com/view?print=all", "https://example.com/view"},
	} {
		a, okA := Canonical(pair[0])
		b, okB := Canonical(pair[1])
		if !okA || !okB || a == b {
			t.Errorf("%s and %s: %s, %s", pair[0], pair[1], a, b)
		}
	}
}

func TestOnlyAddressesOfTheWebAreCanonical(t *testing.T) {
	for _, raw := range []string{
		"", "example.com", "ftp://example.com", "javascript:alert(1)", "https://", "https:///a", "http://exa mple.com", "https://%zz", "https://example.com/" + strings.Repeat("a", maxAddress),
		"https://google.com/url?q=" + strings.Repeat("https://google.com/url%3Fq=", 1) + "mailto:a",
	} {
		if got, ok := Canonical(raw); ok && !strings.HasPrefix(got, "https://google.com/url") {
			t.Errorf("%q: %s", raw, got)
		}
	}
}

func TestDOIs(t *testing.T) {
	for text, want := range map[string]string{
		"https://doi.org/10.1000/182":        "10.1000/182",
		"https://dx.doi.org/10.1000/AbC.1":   "10.1000/abc.1",
		"doi:10.1016/S0140-6736(20)30183-5.": "10.1016/s0140-6736(20)30183-5",
		"10.1000/182":                        "10.1000/182",
		"https://www.frontiersin.org/articles/10.3389/fpsyg.2020.01234/full": "10.3389/fpsyg.2020.01234",
		"https://journals.example/doi/pdf/10.1093/nar/gkv123.pdf":            "10.1093/nar/gkv123",
		"https://example.com/article?doi=10.1000%2F182":                      "10.1000/182",
		"https://doi.org/10.1000%2F182":                                      "10.1000/182",
		"A title\nDOI: 10.1000/182.\nText":                                   "10.1000/182",
		"A title (https://doi.org/10.1000/182) of a paper":                   "10.1000/182",
		"See 10.1000/182 for details of this":                                "",
		"doi: 10.1000/1 and doi: 10.1000/2":                                  "",
		strings.Repeat("x ", 2000) + "doi:10.1000/182":                       "",
		"https://example.com/a":                                              "",
		"":                                                                   "",
		"version 10.1/2":                                                     "",
	} {
		if got := DOI(text); got != want {
			t.Errorf("%.80q: %q, want %q", text, got, want)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"https://example.com/a/../b?x=1&y#!z", "http://google.com/url?q=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ", "https://en.m.wikipedia.org/w/index.php?title=A%20b", "https://doi.org/10.1000/1%25", "https://a.b/a-b-c/amp/index.html", "https://x.y/%2e%2e/;jsessionid=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		first, ok := Canonical(raw)
		if !ok {
			return
		}
		if second, again := Canonical(first); !again || second != first {
			t.Errorf("%q: %q, and again %q", raw, first, second)
		}
	})
}
