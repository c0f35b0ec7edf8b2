package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	rulesFile     = root + "deploy/prometheus/rules/turnstone.yml"
	dashboardFile = root + "deploy/grafana/dashboards/turnstone.json"
	runbooksFile  = root + "docs/runbooks.md"
	metricsFile   = root + "docs/metrics.md"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alert is an alert of the rules.
type alert struct{ name, severity, summary, runbook, expression string }

// alerts reads the rules. It knows only the form in which they are written, so that a test needs no parser of YAML.
func alerts(t *testing.T) (all []alert) {
	t.Helper()
	for _, block := range strings.Split(readFile(t, rulesFile), "      - alert: ")[1:] {
		block, _, _ = strings.Cut(block, "\n  - name:")
		name, rest, _ := strings.Cut(block, "\n")
		value := func(pattern string) string {
			found := regexp.MustCompile(pattern).FindStringSubmatch(rest)
			if found == nil {
				return ""
			}
			return strings.TrimSpace(found[1])
		}
		all = append(all, alert{
			name: name, severity: value(`labels: {severity: (\w+)}`), summary: value(`summary: "(.+)"`), runbook: value(`runbook_url: (\S+)`),
			expression: value(`(?s)expr: (.*?)\n        (?:for|labels):`),
		})
	}
	if len(all) < 20 {
		t.Fatalf("only %d alerts were found", len(all))
	}
	return all
}

var (
	name     = regexp.MustCompile(`\bturnstone_[a-z_]+`)
	selector = regexp.MustCompile(`(turnstone_[a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// checkExpression checks that the metrics of an expression exist, and that they have its labels.
func checkExpression(t *testing.T, where, expression string, registered map[string]metric) {
	t.Helper()
	labels := map[string]bool{"instance": true, "le": true}
	for _, found := range name.FindAllString(expression, -1) {
		is, there := registered[base(found, registered)]
		if !there {
			t.Errorf("%s uses %s, which does not exist", where, found)
		}
		if is.kind == "histogram" && base(found, registered) == found {
			t.Errorf("%s uses the histogram %s without _bucket, _sum or _count", where, found)
		}
		for _, label := range strings.Split(is.labels, ", ") {
			labels[label] = true
		}
	}
	for _, found := range selector.FindAllStringSubmatch(expression, -1) {
		has := strings.Split(registered[base(found[1], registered)].labels, ", ")
		for _, match := range matcher.FindAllStringSubmatch(found[2], -1) {
			if match[1] != "instance" && !slices.Contains(has, match[1]) {
				t.Errorf("%s selects %s by %s, which it does not have", where, found[1], match[1])
			}
		}
	}
	for _, found := range grouping.FindAllStringSubmatch(expression, -1) {
		for _, label := range strings.Split(found[1], ", ") {
			if !labels[label] {
				t.Errorf("%s groups by %s, which no metric of it has: %s", where, label, expression)
			}
		}
	}
}

// base returns the name of the metric that a series belongs to.
func base(series string, registered map[string]metric) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if of, cut := strings.CutSuffix(series, suffix); cut && registered[of].kind == "histogram" {
			return of
		}
	}
	return series
}

func TestEveryAlertUsesMetricsThatExistAndHasARunbook(t *testing.T) {
	registry, _ := everyMetric(t)
	registered, runbooks := ours(t, registry), readFile(t, runbooksFile)
	var names []string
	for _, a := range alerts(t) {
		if slices.Contains(names, a.name) {
			t.Errorf("there are two alerts %s", a.name)
		}
		names = append(names, a.name)
		if a.severity != "critical" && a.severity != "warning" || a.summary == "" || a.expression == "" {
			t.Errorf("%s lacks its severity, summary or expression: %+v", a.name, a)
		}
		if want := "docs/runbooks.md#" + strings.ToLower(a.name); a.runbook != want {
			t.Errorf("%s has the runbook %q, want %q", a.name, a.runbook, want)
		}
		checkExpression(t, a.name, a.expression, registered)
		_, section, there := strings.Cut(runbooks, "\n## "+a.name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, part := range []string{"**Meaning.**", "**Users.**", "**Check.**", "**Do.**"} {
			if !there || !strings.Contains(section, part) {
				t.Errorf("the section %s of docs/runbooks.md lacks %s", a.name, part)
			}
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(runbooks, -1) {
		if !slices.Contains(names, found[1]) {
			t.Errorf("docs/runbooks.md has a section %s, which is no alert", found[1])
		}
	}
}

func TestEveryPanelOfTheDashboardUsesMetricsThatExist(t *testing.T) {
	registry, _ := everyMetric(t)
	registered := ours(t, registry)
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &dashboard); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	var rows []string
	for _, panel := range dashboard.Panels {
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
			continue
		}
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			shown.WriteString(target.Expr + "\n")
			checkExpression(t, panel.Title, target.Expr, registered)
		}
	}
	if want := []string{"Overview", "Turns", "HTTP", "Stores", "Uploads and jobs"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
	for metric := range registered {
		if !strings.Contains(shown.String(), metric) {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}
}

// TestThePagesNameOnlyMetricsThatExist checks the names in the pages that operators read.
func TestThePagesNameOnlyMetricsThatExist(t *testing.T) {
	registry, _ := everyMetric(t)
	registered := ours(t, registry)
	for _, page := range []string{runbooksFile, metricsFile, root + "docs/observability.md"} {
		for _, found := range name.FindAllString(readFile(t, page), -1) {
			if _, there := registered[base(found, registered)]; !there {
				t.Errorf("%s names %s, which does not exist", page, found)
			}
		}
	}
}
