package actors

import (
	"regexp"
	"strings"
	"time"

	"turnstone/protocol"
)

// Route is what stands behind a profile: a model and its limits. Operators choose it; clients name profiles only.
type Route struct {
	Model           string
	ReasoningEffort string
	ContextTokens   int
	MaxOutputTokens int
	MaxToolRounds   int
	FirstByte       time.Duration
	Deadline        time.Duration // of the whole turn
	Latency         string        // published: interactive, patient
	Reasoning       string        // published: standard, deep
}

// Routes maps each profile but auto to its route.
type Routes map[protocol.Profile]Route

// DefaultRoutes are the limits of the profiles; the models' names come from configuration.
func DefaultRoutes(balanced, deep, coding string) Routes {
	base := Route{
		ContextTokens: 128_000, MaxOutputTokens: 8_192, MaxToolRounds: 10, FirstByte: time.Minute,
		Deadline: 15 * time.Minute, Latency: "interactive", Reasoning: "standard",
	}
	with := func(model string, change func(*Route)) Route {
		route := base
		route.Model = model
		change(&route)
		return route
	}
	return Routes{
		protocol.ProfileBalanced: with(balanced, func(*Route) {}),
		protocol.ProfileDeepReasoning: with(deep, func(r *Route) {
			r.ReasoningEffort, r.MaxOutputTokens, r.FirstByte = "high", 32_768, 3*time.Minute
			r.Latency, r.Reasoning = "patient", "deep"
		}),
		protocol.ProfileCoding: with(coding, func(r *Route) {
			r.ReasoningEffort, r.MaxOutputTokens, r.MaxToolRounds = "medium", 16_384, 20
		}),
	}
}

// Resolve decides which profile answers and says why. It is a pure function of the request, so that every node and
// every repetition decides alike.
func (r Routes) Resolve(requested protocol.Profile, input string) protocol.TurnRouting {
	resolved, reason := requested, "The profile was chosen."
	if requested == protocol.ProfileAuto {
		resolved, reason = protocol.ProfileBalanced, "Nothing in the message asks for a specialised profile."
		if why := softwareHeavy(input); why != "" {
			resolved, reason = protocol.ProfileCoding, why
		}
	}
	route := r[resolved]
	return protocol.TurnRouting{
		Profile: resolved, ModelID: route.Model, ModelRole: "answer",
		Intelligence:   protocol.Intelligence{Requested: requested, Resolved: resolved},
		LatencyProfile: route.Latency, ReasoningProfile: route.Reasoning,
		Completion: protocol.Completion{
			MaxOutputTokens: route.MaxOutputTokens, MaxToolRounds: route.MaxToolRounds,
			DeadlineSeconds: int(route.Deadline.Seconds()),
		},
		Reason: reason,
	}
}

var (
	sourceFile = regexp.MustCompile(`(?i)\b[\w./-]+\.(go|py|js|jsx|ts|tsx|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|sql|sh|yaml|yml|toml|dockerfile|tf|css|html|vue)\b`)
	stackTrace = regexp.MustCompile(`(?m)^\s*(at [\w.$<>]+\(|File "[^"]+", line \d+|goroutine \d+ \[|panic: |Traceback \(most recent call last\)|error\[E\d+\])`)
	codeLine   = regexp.MustCompile(`(?m)^\s*(func |def |class |import |#include|package |public |private |const |let |var |SELECT .+ FROM |return |if \(|for \()`)
	codeWords  = regexp.MustCompile(`(?i)\b(refactor|debug|compil(e|er|es|ation)|unit tests?|stack ?trace|regex|segfault|null pointer|api endpoint|pull request|git (rebase|merge|commit)|sql query|typescript|javascript|python|golang|rust|kubernetes|docker(file)?|algorithm|function|implement|bug|codebase|repository|linter?)\b`)
)

// softwareHeavy is a first, readable resolver: it looks for signs of software work and says which it found.
func softwareHeavy(input string) string {
	words := map[string]bool{}
	for _, word := range codeWords.FindAllString(input, 20) {
		words[strings.ToLower(word)] = true
	}
	switch {
	case strings.Contains(input, "```"):
		return "The message holds a block of code."
	case stackTrace.MatchString(input):
		return "The message holds a stack trace."
	case len(codeLine.FindAllString(input, 3)) >= 3:
		return "The message holds lines of code."
	case sourceFile.MatchString(input) && len(words) >= 1:
		return "The message is about source files."
	case len(words) >= 3:
		return "The message is about software work."
	}
	return ""
}
