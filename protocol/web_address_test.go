package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestACitationHasNoAddressButOneOfTheWeb(t *testing.T) {
	for address, kept := range map[string]bool{
		"https://a.example/x?y#z": true, "http://a.example": true, "HTTPS://A.example": true, "https://a.example:8443/": true, "https://[::1]/": true,
		"javascript:alert(1)": false, "JavaScript:alert(1)": false, " javascript:alert(1)": false, "java\nscript:alert(1)": false, "\u0001javascript:alert(1)": false,
		"javascript://a.example/%0aalert(1)": false, "data:text/html,x": false, "vbscript:x": false, "blob:https://a.example/1": false, "file:///etc/passwd": false,
		"mailto:a@b.example": false, "//a.example": false, "/chat": false, "https:": false, "https://": false, "https:///x": false, "https://:443/": false,
		`https:\\a.example`: false, "https:a.example": false, "https://bank.example@a.example/": false, "ftp://a.example": false, "": false,
	} {
		stored, err := json.Marshal(Part{Type: PartText, Citations: []Citation{{Title: "t", URL: WebAddress(address)}}})
		if err != nil || strings.Contains(string(stored), `"url":`) != kept {
			t.Fatalf("%q: %s, %v", address, stored, err)
		}
		raw, err := json.Marshal(map[string]any{"title": "t", "url": address})
		if err != nil {
			t.Fatal(err)
		}
		var written struct{ Citations []Citation }
		var read Citation
		if err := json.Unmarshal(stored, &written); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		want := ""
		if kept {
			want = address
		}
		if string(read.URL) != want || string(written.Citations[0].URL) != want || !kept && address != "" && strings.Contains(string(stored), "script") {
			t.Errorf("%q is read as %q and written as %s", address, read.URL, stored)
		}
	}
}
