package routing

import (
	"strings"
	"time"

	"turnstone/protocol"
)

// Route is a model route: a model behind a profile, with its limits. Operators configure it; clients name only profiles.
type Route struct {
	Name            string // of the client that calls the model; empty if there is only one
	Model           string
	ReasoningEffort string // empty: the provider's default
	ContextTokens   int
	MaxOutputTokens int
	MaxToolRounds   int
	Pictures        bool   // the model accepts pictures
	PictureDetail   string // low, high or auto; empty: the provider's default
	WithoutTools    bool   // the model is offered no tools
	Fallback        bool   // another route follows, so a provider that is busy is waited for only a short time
	FirstByte       time.Duration
	Deadline        time.Duration // of the whole turn
	Latency         string        // published in turn.routing: interactive or patient
	Reasoning       string        // published in turn.routing: standard or deep
}

// Routes maps each profile but auto to its routes, of which it has at least one. The later ones are used while the earlier
// ones fail.
type Routes map[protocol.Profile][]Route

// First returns the first route of a profile.
func (r Routes) First(profile protocol.Profile) Route { return r[profile][0] }

// Abilities returns what the profiles can do, for clients.
func (r Routes) Abilities() (list []protocol.ProfileAbilities) {
	for _, profile := range protocol.Profiles {
		routes := r[profile]
		if len(routes) == 0 { // auto
			continue
		}
		first := routes[0]
		able := protocol.ProfileAbilities{
			Profile: profile, ModelID: first.Model, Pictures: first.Pictures, Tools: !first.WithoutTools, ContextTokens: first.ContextTokens,
			MaxOutputTokens: first.MaxOutputTokens, Fallback: len(routes) > 1,
		}
		if first.ReasoningEffort != "" {
			able.Effort = &first.ReasoningEffort
		}
		list = append(list, able)
	}
	return list
}

// Defaults returns the routes of the profiles with their default limits. The arguments are the names of models.
func Defaults(balanced, deep, coding string) Routes {
	base := Route{
		ContextTokens: 128_000, MaxOutputTokens: 8_192, MaxToolRounds: 10, FirstByte: time.Minute,
		Deadline: 15 * time.Minute, Latency: "interactive", Reasoning: "standard",
	}
	with := func(model string, change func(*Route)) []Route {
		route := base
		route.Model = model
		change(&route)
		return []Route{route}
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

// Resolve returns the profile, the model and the limits for a request, and the reason for the choice. previous is the profile
// of the answer before; empty if there is none. It is a pure function of the request, so every node and every repetition gets
// the same result.
func (r Routes) Resolve(requested, previous protocol.Profile, input string) protocol.TurnRouting {
	resolved, reason := requested, "The profile was chosen."
	if requested == protocol.ProfileAuto {
		resolved, reason = protocol.ProfileBalanced, "Nothing in the message asks for a specialised profile."
		if why := softwareSign(input, previous == protocol.ProfileCoding); why != "" {
			resolved, reason = protocol.ProfileCoding, why
		}
	}
	route := r.First(resolved)
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

// softwareSign looks for signs of software work in the input. after reports that the answer before was such work. It returns
// a sentence that names the sign, or "".
func softwareSign(input string, after bool) string {
	if why := codeSign(input); why != "" {
		return why
	}
	switch found := topicsOf(input); {
	case found.software():
		return "The message is about software work."
	case after && len(input) <= maxContinuation && found.continues():
		return "The message continues software work."
	}
	return ""
}

// codeSign looks for code, traces, and names of files and tools.
func codeSign(input string) string {
	if strings.Contains(input, "```") {
		return "The message contains a block of code."
	}
	trace, code := scanLines(input)
	if trace {
		return "The message contains a stack trace."
	}
	words := countCodeWords(input)
	switch {
	case code >= 3:
		return "The message contains lines of code."
	case words >= 1 && namesSourceFile(input):
		return "The message is about source files."
	case words >= 3:
		return "The message is about software work."
	}
	return ""
}
