package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"turnstone/actors/routing"
	"turnstone/protocol"
)

// loadModels loads a configuration with a file of routes.
func loadModels(t *testing.T, text string, mode os.FileMode, more map[string]string) (Config, *Models, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "models.json")
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"TURNSTONE_MODEL_CONFIG": file}
	for name, value := range more {
		environment[name] = value
	}
	config, warnings, err := Load(with(environment))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	if err := config.Check(); err != nil {
		return config, nil, err
	}
	models, err := config.Models()
	return config, models, err
}

func TestAFileNamesTheRoutesOfTheProfiles(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sesame-of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, models, err := loadModels(t, `{
		"balanced": [
			{"api": "anthropic", "model": "large", "api_key_file": "`+key+`", "pictures": true, "context_tokens": 200000},
			{"name": "local", "api": "chat", "base_url": "http://127.0.0.1:1/v1", "model": "small", "context_tokens": 8192, "tools": false,
			 "temperature": 0.5, "extra": {"seed": 1, "aws": {"secret_key": ["sesame-of-a-body"]}}, "drop": ["stream_options"], "idle_timeout": "20s", "headers": {"X-Team": "blue-secret", "X-Token": "Bearer sesame-of-a-header"}, "proxy": "http://me:sesame%2Dof-a-proxy@127.0.0.1:1"}
		],
		"coding": [{"api": "responses", "model": "coder", "effort": "none", "max_output_tokens": 5000, "first_byte_timeout": "7m"}],
		"title": [{"api": "chat", "model": "tiny", "picture_detail": "low", "api_key": "sesame-of-the-title"}]
	}`, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	balanced, deep, coding := models.Routes[protocol.ProfileBalanced], models.Routes[protocol.ProfileDeepReasoning], models.Routes[protocol.ProfileCoding]
	if len(balanced) != 2 || balanced[0].Name != "balanced-1" || !balanced[0].Pictures || balanced[0].ContextTokens != 200_000 || balanced[0].MaxOutputTokens != 8192 {
		t.Errorf("%+v", balanced)
	}
	if small := balanced[1]; small.Name != "local" || !small.WithoutTools || small.Pictures || small.MaxOutputTokens != 2048 || small.ReasoningEffort != "" {
		t.Errorf("%+v", small)
	}
	if len(deep) != 2 || deep[0].Model != "large" || deep[0].ReasoningEffort != "high" || deep[0].MaxOutputTokens != 32_768 {
		t.Errorf("%+v", deep)
	}
	if len(coding) != 1 || coding[0].ReasoningEffort != "" || coding[0].MaxOutputTokens != 5000 || coding[0].FirstByte.Minutes() != 7 || coding[0].MaxToolRounds != 20 {
		t.Errorf("%+v", coding)
	}
	if len(models.Title) != 1 || models.Title[0].Model != "tiny" || models.Title[0].PictureDetail != "low" || len(models.Clients) != 4 {
		t.Errorf("%+v, %d clients", models.Title, len(models.Clients))
	}
	if local := models.Clients[1].Config; string(local.Client.Extra["temperature"]) != "0.5" || string(local.Client.Extra["seed"]) != "1" || local.Client.Idle.Seconds() != 20 {
		t.Errorf("%+v", local.Client)
	}
	secrets := config.SecretValues()
	for _, secret := range []string{
		"sesame-of-a-file", "sesame-of-the-title", "blue-secret", "sesame-of-a-header", "sesame-of-a-proxy", "sesame%2Dof-a-proxy", "sesame-of-a-body",
	} {
		if !slices.Contains(secrets, secret) {
			t.Errorf("%s is not known as a secret", secret)
		}
	}
}

func TestTheSecretsOfAWrongFileAreKnown(t *testing.T) {
	config, _, err := loadModels(t, `{"balanced": [{"api": "unknown", "api_key": "sesame-of-a-mistake"}]}`, 0o600, nil)
	if err == nil || !slices.Contains(config.SecretValues(), "sesame-of-a-mistake") {
		t.Error(err)
	}
}

func TestAWrongFileOfRoutesIsRefused(t *testing.T) {
	const route = `"api": "chat", "model": "m"`
	for text, want := range map[string]string{
		`{`:               "unexpected EOF",
		`{} {}`:           "something after its object",
		`{"balanced":[]}`: "must have a route",
		`{"balanced":[{` + route + `,"colour":"red"}]}`:                                    `unknown field "colour"`,
		`{"balanced":[{"model":"m"}]}`:                                                     "api: invalid value",
		`{"balanced":[{"api":"chat"}]}`:                                                    "model is required",
		`{"balanced":[{` + route + `,"effort":"huge"}]}`:                                   "effort: invalid value",
		`{"balanced":[{` + route + `,"picture_detail":"huge"}]}`:                           "picture_detail: invalid value",
		`{"balanced":[{"api":"anthropic","model":"m","picture_detail":"low"}]}`:            "no such setting",
		`{"balanced":[{` + route + `,"context_tokens":100}]}`:                              "context_tokens",
		`{"balanced":[{` + route + `,"context_tokens":2000,"max_output_tokens":2000}]}`:    "less than context_tokens",
		`{"balanced":[{` + route + `,"temperature":3}]}`:                                   "temperature",
		`{"balanced":[{` + route + `,"top_p":0}]}`:                                         "top_p",
		`{"balanced":[{` + route + `,"extra":{"stream":false}}]}`:                          `sets "stream"`,
		`{"balanced":[{` + route + `,"idle_timeout":"soon"}]}`:                             "invalid duration",
		`{"balanced":[{` + route + `,"base_url":"nowhere"}]}`:                              "base URL",
		`{"balanced":[{` + route + `,"ca_file":"/none"}]}`:                                 "certificates",
		`{"balanced":[{` + route + `,"api_key_file":"/none"}]}`:                            "api_key_file",
		`{"balanced":[{` + route + `,"name":"a"},{` + route + `,"name":"a"}]}`:             "two routes have the name",
		`{"balanced":[{` + route + `,"api_key":"sesame","headers":{"X-Api-Key":"open"}}]}`: "remove one of them",
	} {
		if _, _, err := loadModels(t, text, 0o600, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TURNSTONE_MODEL_CONFIG") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, _, err := loadModels(t, `{"balanced":[{`+route+`,"api_key":"sesame"}]}`, 0o644, nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	if _, _, err := loadModels(t, `{"balanced":[{`+route+`}]}`, 0o644, nil); err != nil {
		t.Errorf("a file without a key: %v", err)
	}
	if _, _, err := loadModels(t, `{"balanced":[{`+route+`}]}`, 0o600, map[string]string{"TURNSTONE_MODEL_API_KEY": "sesame"}); err == nil || !strings.Contains(err.Error(), "TURNSTONE_MODEL_API_KEY are both set") {
		t.Errorf("two configurations: %v", err)
	}
}

func TestTheVariablesDescribeASingleRoute(t *testing.T) {
	config, _, err := Load(with(map[string]string{
		"TURNSTONE_MODEL_PROVIDER": "openai", "TURNSTONE_MODEL_BALANCED": "small", "TURNSTONE_MODEL_CODING": "large", "TURNSTONE_MODEL_IMAGES": "large",
	}))
	if err != nil {
		t.Fatal(err)
	}
	models, err := config.Models()
	if err != nil {
		t.Fatal(err)
	}
	first := func(profile protocol.Profile) routing.Route { return models.Routes.First(profile) }
	if len(models.Clients) != 1 || first(protocol.ProfileDeepReasoning).Model != "small" || first(protocol.ProfileBalanced).Pictures ||
		first(protocol.ProfileCoding).Model != "large" || !first(protocol.ProfileCoding).Pictures || models.Title[0].Model != "small" {
		t.Errorf("%+v", models)
	}
}
