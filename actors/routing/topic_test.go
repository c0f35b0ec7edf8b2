package routing

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"turnstone/protocol"
)

//go:embed testdata/prompts.txt
var prompts string

// TestAutoChoosesCodingForSoftwareWork resolves a labelled list of prompts in six languages, and prints the accuracy.
func TestAutoChoosesCodingForSoftwareWork(t *testing.T) {
	routes := Defaults("b", "d", "c")
	right, all := map[string]int{}, map[string]int{}
	for line := range strings.Lines(prompts) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		language, label, prompt := fields[0], fields[1], fields[2]
		want, previous := protocol.ProfileBalanced, protocol.Profile("")
		if strings.HasPrefix(label, "+") {
			want = protocol.ProfileCoding
		}
		if strings.HasSuffix(label, ">") {
			previous = protocol.ProfileCoding
		}
		for _, key := range []string{language, "all"} {
			all[key]++
			if got := routes.Resolve(protocol.ProfileAuto, previous, prompt).Profile; got == want {
				right[key]++
			} else if key != "all" {
				t.Logf("%s %s: %s", language, got, prompt)
			}
		}
		if got := routes.Resolve(protocol.ProfileBalanced, previous, prompt).Profile; got != protocol.ProfileBalanced {
			t.Errorf("a named profile became %s: %s", got, prompt)
		}
	}
	if all["all"] < 300 || len(all) != 7 {
		t.Errorf("the list has %d prompts in %d languages", all["all"], len(all)-1)
	}
	for key, count := range all {
		accuracy, least := 100*float64(right[key])/float64(count), 90.0
		if key == "all" {
			least = 95
		}
		fmt.Printf("auto: %s %.1f %% of %d prompts\n", key, accuracy, count)
		if accuracy < least {
			t.Errorf("%s: %.1f %%, want at least %.0f %%", key, accuracy, least)
		}
	}
}
