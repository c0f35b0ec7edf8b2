package actors

import (
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

// softwareHeavy is a first, readable resolver: it looks for signs of software work and says which it found.
func softwareHeavy(input string) string {
	if strings.Contains(input, "```") {
		return "The message holds a block of code."
	}
	trace, code := lookAtLines(input)
	if trace {
		return "The message holds a stack trace."
	}
	words := countCodeWords(input)
	switch {
	case code >= 3:
		return "The message holds lines of code."
	case words >= 1 && namesSourceFile(input):
		return "The message is about source files."
	case words >= 3:
		return "The message is about software work."
	}
	return ""
}
