package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"turnstone/actors/routing"
	"turnstone/protocol"
	modelapi "turnstone/providers/model"
	"turnstone/providers/model/open"
	"turnstone/providers/model/scripted"
)

// ModelFile is the content of the file that TURNSTONE_MODEL_CONFIG names.
type ModelFile struct {
	Balanced      []ModelRoute `json:"balanced"`
	DeepReasoning []ModelRoute `json:"deep_reasoning"`
	Coding        []ModelRoute `json:"coding"`
	Title         []ModelRoute `json:"title"`
}

// ModelRoute is one route of the file. The struct tags are the source of its part of `config doc`.
type ModelRoute struct {
	Name            string                     `json:"name" help:"Name of the model route in logs and in the output of doctor; unique in the file. Default: the profile and the position, for example balanced-1."`
	API             string                     `json:"api" help:"Wire format: chat (Chat Completions), responses (OpenAI Responses) or anthropic (Messages). Required."`
	BaseURL         string                     `json:"base_url" help:"Base URL of the API. Default: the vendor's own."`
	APIKey          string                     `json:"api_key" help:"API key. Then only the file's owner may have access to the file (mode 0600). Default: no key is sent."`
	APIKeyFile      string                     `json:"api_key_file" help:"Path of a file (mode 0600) with the API key, instead of api_key."`
	Headers         map[string]string          `json:"headers" help:"Additional headers for every request, by name. The file then needs the mode 0600, too."`
	Model           string                     `json:"model" help:"The provider's name of the model. Required."`
	ContextTokens   int                        `json:"context_tokens" help:"Size of the model's context, in tokens: at least 1024. Default: 128000. A smaller size is learned from the first refusal."`
	MaxOutputTokens int                        `json:"max_output_tokens" help:"Maximum length of an answer, in tokens. Default: the limit of the profile (8192, 32768 for deep_reasoning, 16384 for coding), but at most a quarter of the context."`
	Effort          string                     `json:"effort" help:"Reasoning effort: low, medium, high, or none (none is sent). Default: none for balanced, high for deep_reasoning, medium for coding."`
	Temperature     *float64                   `json:"temperature" help:"Sampling temperature, from 0 to 2. Default: none is sent."`
	TopP            *float64                   `json:"top_p" help:"Nucleus sampling, above 0 and at most 1. Default: none is sent."`
	Tools           *bool                      `json:"tools" help:"Whether the model is offered tools. Default: true."`
	Pictures        bool                       `json:"pictures" help:"Whether the model accepts pictures. Default: false: it gets their names and sizes."`
	PictureDetail   string                     `json:"picture_detail" help:"How much of a picture the model looks at, which decides what it costs: low, high or auto. The API anthropic has no such setting. Default: auto at responses; none is sent at chat."`
	Extra           map[string]json.RawMessage `json:"extra" help:"Members that are added to the body of every request, or replace those of the service, for example {\"service_tier\": \"flex\"}."`
	Drop            []string                   `json:"drop" help:"Members that are removed from the body of every request, for example [\"stream_options\"]. A dot separates a member of a member: reasoning.summary."`
	FirstByte       duration                   `json:"first_byte_timeout" help:"How long the response may take to start. Default: 1m, 3m for deep_reasoning. A title is given up after 30s in all."`
	Idle            duration                   `json:"idle_timeout" help:"How long a started answer may be silent. Default: 2m."`
	Proxy           string                     `json:"proxy" help:"http or https URL of an outgoing proxy. Default: none."`
	CAFile          string                     `json:"ca_file" help:"Path of certificates (PEM) that are trusted in addition to those of the system. Default: none."`
}

// Models is what the service needs to call models.
type Models struct {
	Routes  routing.Routes  // of the profiles
	Title   []routing.Route // at least one
	Clients []open.Route    // of all routes, each once
}

const (
	maxModelFile = 1 << 20
	maxRoutes    = 16 // of a profile
	minContext   = 1024
)

// fixedMembers are the members of a body that Extra must not replace, because the service depends on them.
var fixedMembers = []string{"model", "messages", "input", "system", "instructions", "stream", "tools", "store"}

// Models returns the configured routes: those of the file, or those of the TURNSTONE_MODEL_* variables.
func (c *Config) Models() (*Models, error) {
	if c.Model.Config == "" {
		return c.simpleModels()
	}
	if name := c.simpleSetting(); name != "" {
		return nil, fmt.Errorf("TURNSTONE_MODEL_CONFIG and %s are both set: leave one out", name)
	}
	file, err := readModelFile(c.Model.Config)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_MODEL_CONFIG: %w", err)
	}
	models, err := file.models()
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_MODEL_CONFIG: %s: %w", c.Model.Config, err)
	}
	return models, nil
}

// simpleSetting returns the name of a set variable that describes a single route; empty if there is none.
func (c *Config) simpleSetting() string {
	fields := reflect.ValueOf(c.Model)
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		text := fmt.Sprint(fields.Field(i).Interface())
		if name := tag.Get("env"); name != "TURNSTONE_MODEL_CONFIG" && text != tag.Get("envDefault") && text != "[]" {
			return name
		}
	}
	return ""
}

func (c *Config) simpleModels() (*Models, error) {
	m := c.Model
	client := open.Config{
		Provider: m.Provider, API: m.API, BaseURL: m.BaseURL, APIKey: m.APIKey, Scripted: scripted.DefaultOptions(),
		Client: modelapi.Options{Headers: m.Headers.Header, Proxy: m.Proxy, CAFile: m.CAFile},
	}
	balanced := m.Balanced
	if balanced == "" { // the scripted model has only this name
		balanced = m.Provider
	}
	other := func(name string) string {
		if name == "" {
			return balanced
		}
		return name
	}
	routes := routing.Defaults(balanced, other(m.DeepReasoning), other(m.Coding))
	for _, list := range routes {
		list[0].Pictures = m.Provider == scripted.Family || slices.Contains(m.Images, list[0].Model)
	}
	return &Models{Routes: routes, Title: routes[protocol.ProfileBalanced], Clients: []open.Route{{Config: client}}}, nil
}

// readModelFile reads the file. Its errors never contain a key.
func readModelFile(path string) (*ModelFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxModelFile {
		return nil, fmt.Errorf("%s is not a regular file, or is larger than 1 MiB", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file ModelFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has something after its object", path)
	}
	for _, list := range file.lists() {
		for _, route := range *list.routes {
			if mode := info.Mode().Perm(); (route.APIKey != "" || len(route.Headers) > 0) && mode&secretMode != 0 {
				return nil, fmt.Errorf("%s contains keys or headers and has mode %04o, but only its owner may read it: run chmod 600 on it", path, mode)
			}
		}
	}
	return &file, nil
}

type routeList struct {
	name   string
	routes *[]ModelRoute
}

func (f *ModelFile) lists() []routeList {
	return []routeList{{"balanced", &f.Balanced}, {"deep_reasoning", &f.DeepReasoning}, {"coding", &f.Coding}, {"title", &f.Title}}
}

// models returns the routes of a file. Profiles without routes have those of balanced; titles, too.
func (f *ModelFile) models() (*Models, error) {
	if len(f.Balanced) == 0 {
		return nil, errors.New("the list balanced must have a route")
	}
	models := &Models{Routes: routing.Routes{}}
	names := map[string]bool{}
	for _, list := range f.lists() {
		if len(*list.routes) > maxRoutes {
			return nil, fmt.Errorf("%s has more than %d routes", list.name, maxRoutes)
		}
		for i := range *list.routes {
			route := &(*list.routes)[i]
			if route.Name == "" {
				route.Name = fmt.Sprintf("%s-%d", list.name, i+1)
			}
			if names[route.Name] {
				return nil, fmt.Errorf("two routes have the name %q", route.Name)
			}
			names[route.Name] = true
			client, err := route.client()
			if err != nil {
				return nil, fmt.Errorf("route %s: %w", route.Name, err)
			}
			models.Clients = append(models.Clients, open.Route{Name: route.Name, Config: client})
		}
	}
	defaults := routing.Defaults("", "", "")
	for profile, own := range map[protocol.Profile][]ModelRoute{
		protocol.ProfileBalanced: f.Balanced, protocol.ProfileDeepReasoning: f.DeepReasoning, protocol.ProfileCoding: f.Coding,
	} {
		if len(own) == 0 {
			own = f.Balanced
		}
		for i := range own {
			route, err := own[i].apply(defaults.First(profile))
			if err != nil {
				return nil, fmt.Errorf("route %s: %w", own[i].Name, err)
			}
			models.Routes[profile] = append(models.Routes[profile], route)
		}
	}
	models.Title = models.Routes[protocol.ProfileBalanced]
	for i := range f.Title {
		route, err := f.Title[i].apply(defaults.First(protocol.ProfileBalanced))
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", f.Title[i].Name, err)
		}
		if i == 0 {
			models.Title = nil
		}
		models.Title = append(models.Title, route)
	}
	return models, nil
}

// client returns the client of a route.
func (r *ModelRoute) client() (config open.Config, err error) {
	config = open.Config{
		BaseURL: r.BaseURL, APIKey: r.APIKey, Scripted: scripted.DefaultOptions(),
		Client: modelapi.Options{Extra: map[string]json.RawMessage{}, Drop: r.Drop, Idle: time.Duration(r.Idle), Proxy: r.Proxy, CAFile: r.CAFile},
	}
	if err := config.Use(r.API); err != nil {
		return config, err
	}
	if r.APIKeyFile != "" {
		if r.APIKey != "" {
			return config, errors.New("api_key and api_key_file are both set: leave one out")
		}
		if config.APIKey, err = ReadSecret(r.APIKeyFile); err != nil {
			return config, fmt.Errorf("api_key_file: %w", err)
		}
	}
	var lines []string
	for name, value := range r.Headers {
		lines = append(lines, name+": "+value)
	}
	if config.Client.Headers, err = modelapi.ParseHeaders(strings.Join(lines, "\n")); err != nil {
		return config, fmt.Errorf("headers: %w", err)
	}
	if err := checkKeyHeaders(config.Client.Headers, config.APIKey); err != nil {
		return config, err
	}
	for name, value := range r.Extra {
		if slices.Contains(fixedMembers, name) {
			return config, fmt.Errorf("extra: the service itself sets %q", name)
		}
		config.Client.Extra[name] = value
	}
	for name, value := range map[string]*float64{"temperature": r.Temperature, "top_p": r.TopP} {
		if value != nil {
			config.Client.Extra[name], _ = json.Marshal(*value)
		}
	}
	_, err = open.Model(config)
	return config, err
}

// checkKeyHeaders refuses a second key among the headers.
func checkKeyHeaders(headers http.Header, key string) error {
	for _, name := range modelapi.KeyHeaders {
		if headers.Get(name) != "" && key != "" {
			return fmt.Errorf("the headers contain %s, and an API key is also set: remove one of them", name)
		}
	}
	return nil
}

// apply returns the route with the values of the file, and those of the profile where the file has none.
func (r *ModelRoute) apply(route routing.Route) (routing.Route, error) {
	switch {
	case r.Model == "":
		return route, errors.New("model is required")
	case r.ContextTokens != 0 && r.ContextTokens < minContext:
		return route, fmt.Errorf("context_tokens: %d is too small (want at least %d)", r.ContextTokens, minContext)
	case r.MaxOutputTokens < 0:
		return route, errors.New("max_output_tokens must not be negative")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return route, errors.New("temperature must be from 0 to 2")
	case r.TopP != nil && (*r.TopP <= 0 || *r.TopP > 1):
		return route, errors.New("top_p must be above 0 and at most 1")
	}
	route.Name, route.Model, route.Pictures, route.WithoutTools = r.Name, r.Model, r.Pictures, r.Tools != nil && !*r.Tools
	if r.ContextTokens > 0 {
		route.ContextTokens = r.ContextTokens
	}
	if route.MaxOutputTokens = min(route.MaxOutputTokens, route.ContextTokens/4); r.MaxOutputTokens > 0 {
		route.MaxOutputTokens = r.MaxOutputTokens
	}
	if route.MaxOutputTokens >= route.ContextTokens {
		return route, errors.New("max_output_tokens must be less than context_tokens")
	}
	if r.FirstByte > 0 {
		route.FirstByte = time.Duration(r.FirstByte)
	}
	switch {
	case !slices.Contains([]string{"", "low", "high", "auto"}, r.PictureDetail):
		return route, fmt.Errorf("picture_detail: invalid value %q (want low, high or auto)", r.PictureDetail)
	case r.PictureDetail != "" && !open.HasPictureDetail(r.API):
		return route, fmt.Errorf("picture_detail: the API %s has no such setting", r.API)
	}
	route.PictureDetail = r.PictureDetail
	switch r.Effort {
	case "":
	case "none":
		route.ReasoningEffort = ""
	case "low", "medium", "high":
		route.ReasoningEffort = r.Effort
	default:
		return route, fmt.Errorf("effort: invalid value %q (want low, medium, high or none)", r.Effort)
	}
	return route, nil
}

var (
	validScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)
	secretName  = regexp.MustCompile(`(?i)key|token|secret|password|auth|credential`)
)

const docModelFile = `
## The file of TURNSTONE_MODEL_CONFIG

An object in JSON with the members ` + "`balanced`, `deep_reasoning`, `coding` and `title`" + `: lists of model routes, of which only ` + "`balanced`" + ` is required. A profile without a
list has the routes of ` + "`balanced`" + ` with its own limits; titles, too. Each route after the first of a list is used while the routes before it fail, but never after the
first output of a turn. After three failures in succession, an account's calls leave a route out for 30 seconds; all do when calls of several accounts fail
in this way, or at once if its key or its credit was refused. For example:

` + "```json" + `
{
  "balanced": [
    {"api": "anthropic", "model": "claude-sonnet-4-5", "api_key_file": "/run/secrets/anthropic", "pictures": true, "context_tokens": 200000},
    {"api": "chat", "base_url": "http://10.0.0.5:8000/v1", "model": "qwen3-32b", "context_tokens": 32768}
  ],
  "title": [{"api": "chat", "base_url": "http://10.0.0.5:8000/v1", "model": "qwen3-4b"}]
}
` + "```" + `

A model route has these members:

| name | description |
|---|---|
`

// documentModelFile writes the description of the file.
func documentModelFile(to *strings.Builder) {
	to.WriteString(docModelFile)
	fields := reflect.TypeFor[ModelRoute]()
	for i := range fields.NumField() {
		tag := fields.Field(i).Tag
		fmt.Fprintf(to, "| `%s` | %s |\n", tag.Get("json"), tag.Get("help"))
	}
}
