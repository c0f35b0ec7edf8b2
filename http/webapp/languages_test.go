package webapp

import (
	"maps"
	"os"
	"regexp"
	"testing"
)

// The app defines its languages in TypeScript. The list of the server must be the same.
func TestTheServerAndTheAppHaveTheSameLanguages(t *testing.T) {
	source, err := os.ReadFile("../../web/src/messages/catalog.ts")
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^  (\w+): \{ name: .*direction: "(ltr|rtl)"`).FindAllStringSubmatch(string(source), -1) {
		offered[line[1]] = line[2]
	}
	if len(offered) == 0 || !maps.Equal(offered, directions) {
		t.Errorf("the app has the languages %v, the server %v", offered, directions)
	}
}
