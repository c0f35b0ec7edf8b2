package policy

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// However short it is, private data does not leave unnoticed because it is encoded.
func TestEncodedPrivateDataIsNoticed(t *testing.T) {
	const private = "The vault: pin 4938, card 7719-4455-88. The colour is vermilion. The key is blue as the sky. パスワードは東京湾です。"
	reading := &Reading{User: []string{"What is the weather in Emden in 1999?"}, Private: []string{private}, Untrusted: true}
	percent := func(text string) (out string) {
		for _, c := range []byte(text) {
			out += fmt.Sprintf("%%%02x", c)
		}
		return out
	}
	encode := map[string]func(string) string{
		"base64": func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
		"base64url, without padding, after another word": func(text string) string {
			return "tide-" + base64.RawURLEncoding.EncodeToString([]byte(text))
		},
		"base64 in pieces": func(text string) string {
			all := base64.RawStdEncoding.EncodeToString([]byte(text))
			return all[:3] + " " + all[3:5] + "." + all[5:]
		},
		"base64 in a sentence": func(text string) string {
			return "tides of " + base64.StdEncoding.EncodeToString([]byte(`{"k":"`+text+`"}`)) + " today"
		},
		"base32":                      func(text string) string { return base32.StdEncoding.EncodeToString([]byte(text)) },
		"base32 in lower case":        func(text string) string { return strings.ToLower(base32.StdEncoding.EncodeToString([]byte(text))) },
		"hex":                         func(text string) string { return "code " + hex.EncodeToString([]byte(text)) },
		"percent":                     percent,
		"percent, twice":              func(text string) string { return url.QueryEscape(percent(text)) },
		"percent beside a bare one":   func(text string) string { return "100% " + percent(text) },
		"base64, escaped for a query": func(text string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))) },
		"base64 in upper-case percent": func(text string) string {
			return strings.ToUpper(percent(base64.StdEncoding.EncodeToString([]byte(text))))
		},
	}
	for name, as := range encode {
		for _, part := range []string{"4938", "vermilion", "7719-4455", "東京湾"} {
			if strings.HasPrefix(name, "percent") && (part == "vermilion" || part == "東京湾") {
				continue // a word of three or more, as without the escapes
			}
			text := as(part)
			if marked := reading.private(text); len(marked) == 0 {
				t.Errorf("%s: %q leaves as %q without a mark", name, part, text)
			}
		}
		if name != "percent" {
			text := as("1999")
			if marked := reading.private(text); len(marked) > 0 {
				t.Errorf("%s: %q, which the user wrote, is marked as %q", name, text, marked)
			}
		}
	}
}

func TestOrdinaryQueriesAreNoEncodedData(t *testing.T) {
	private := strings.Repeat("The quick brown fox jumps over the lazy dog near 1984 Orwell street. Budget for Q3: 48,200 EUR, vendor Zephyr. ", 2_000)
	reading := &Reading{User: []string{"Look it up."}, Private: []string{private}}
	for _, text := range []string{
		"weather in Emden tomorrow", "how to configure a kubernetes ingress controller", "difference between base64 and hexadecimal", "ISO 8601 duration format",
		"golang strings.FieldsFunc performance", "Deutsche Rechtschreibung Reform", "facade pattern decade", "東京 天気",
		"SQLSTATE 42P01 relation does not exist", "RFC 9110 section 15.5.5", "nginx http2 upstream keepalive timeout", "d3 v7 axisBottom tickFormat",
		strings.Repeat("Unlike most waders, oystercatchers carry food home to their chicks, which lets them nest far from any shore. ", 500),
	} {
		if marked := reading.private(text); len(marked) > 0 {
			t.Errorf("%.80q is marked: %q", text, marked)
		}
	}
}
