package settings

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const goodSecret = "vG3x0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd"

// minimalEnvironment returns the minimal environment that serve accepts.
func minimalEnvironment() map[string]string {
	return map[string]string{
		"DATABASE_URL": "postgres://turnstone:hidden@db.example.org/turnstone", "REDIS_URL": "redis://cache.example.org:6379",
		"TURNSTONE_SECRET": goodSecret, "TURNSTONE_BASE_URL": "https://chat.example.org",
	}
}

func with(more map[string]string) map[string]string {
	all := minimalEnvironment()
	maps.Copy(all, more)
	return all
}

func TestTheLeastConfigurationServesWithTheDocumentedDefaults(t *testing.T) {
	config, warnings, err := Load(minimalEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	if err := config.CheckServe(); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	if config.Service.Listen != "127.0.0.1:8080" || config.Service.DrainGrace != duration(25*time.Second) ||
		config.Limits.Chat != (Rate{60, time.Minute, 20}) || config.Limits.MaxLiveTurns != 5 || config.Limits.NodeLiveTurns != 1000 || config.Cluster != (Cluster{}) {
		t.Errorf("defaults: %+v", config)
	}
}

func TestABadValueIsOneLineThatNamesTheVariable(t *testing.T) {
	for name, value := range map[string]string{
		"TURNSTONE_DRAIN_GRACE": "soon", "TURNSTONE_LIMIT_CHAT": "many", "TURNSTONE_LIMIT_READS": "0/1m", "TURNSTONE_MAX_LIVE_TURNS": "few",
		"TURNSTONE_MAX_STREAMS": "0", "TURNSTONE_MAX_CONNECTIONS": "0", "TURNSTONE_LOG_LEVEL": "loud", "TURNSTONE_BASE_URL": "chat.example.org",
		"TURNSTONE_ALLOWED_ORIGINS": "https://a.example.org,*", "TURNSTONE_TRUSTED_PROXIES": "10.0.0.0/64", "TURNSTONE_SECRET": "short",
		"TURNSTONE_REGISTRATION": "perhaps", "TURNSTONE_LISTEN": "8080", "TURNSTONE_INTERNAL_LISTEN": "nowhere", "TURNSTONE_INTERNAL_HOSTS": "metrics:9090,*",
		"DATABASE_URL": "mysql://db", "REDIS_URL": "http://cache", "TURNSTONE_S3_ENDPOINT": "storage", "TURNSTONE_CLAMD_ADDRESS": "clamd",
		"TURNSTONE_MODEL_PROVIDER": "openai", "TURNSTONE_MODEL_API": "soap", "TURNSTONE_TLS_CERT_FILE": "/only/one",
		"TURNSTONE_CLUSTER_LISTEN": "7946", "TURNSTONE_CLUSTER_ADVERTISE": "10.0.0.7:7946", "TURNSTONE_CLUSTER_KEY_FILE": "/only/one", "TURNSTONE_NODE_MAX_LIVE_TURNS": "-1",
		"TURNSTONE_OIDC_CORP_ISSUER": "https://id.example.org", "TURNSTONE_MODEL_HEADERS": "no header", "TURNSTONE_MODEL_IMAGES": "unknown",
		"TURNSTONE_SMTP_URL": "smtps://mail.example.org", "TURNSTONE_SMTP_FROM": "no-reply@example.org", "TURNSTONE_SMTP_CA_FILE": "/no/file",
		"TURNSTONE_SEARCH_PROVIDERS": "google", "TURNSTONE_SEARCH_SEARXNG_URL": "http://searxng:8080", "TURNSTONE_SEARCH_BRAVE_KEY": "key", "TURNSTONE_SEARCH_TAVILY_KEY": "key",
		"TURNSTONE_WEB_ALLOW": "*.example.org", "TURNSTONE_WEB_SEARCHES_PER_DAY": "-1", "TURNSTONE_WEB_PAGES_PER_DAY": "many",
		"TURNSTONE_RUN_CODE": "maybe", "TURNSTONE_CODE_SECONDS_PER_DAY": "-1",
	} {
		config, _, err := Load(with(map[string]string{name: value}))
		if err == nil {
			err = config.CheckServe()
		}
		if err == nil {
			t.Errorf("%s=%s is accepted", name, value)
			continue
		}
		line := err.Error()
		known := strings.Contains(line, name) || strings.HasPrefix(name, "TURNSTONE_MODEL_") && strings.Contains(line, "TURNSTONE_MODEL_") ||
			strings.HasPrefix(name, "TURNSTONE_OIDC_") && strings.Contains(line, "TURNSTONE_OIDC_CORP_")
		if !known || strings.Contains(line, "\n") {
			t.Errorf("%s=%s: %s", name, value, line)
		}
	}
}

func TestServeRefusesWhatWouldNotBeSafe(t *testing.T) {
	for _, c := range []struct {
		change map[string]string
		want   string
	}{
		{map[string]string{"TURNSTONE_BASE_URL": "http://chat.example.org"}, "plain http"},
		{map[string]string{"TURNSTONE_BASE_URL": "", "TURNSTONE_LISTEN": "0.0.0.0:8080"}, "TURNSTONE_BASE_URL is needed with TURNSTONE_LISTEN=0.0.0.0:8080"},
		{map[string]string{"TURNSTONE_BASE_URL": "", "TURNSTONE_LISTEN": ":8080"}, "TURNSTONE_BASE_URL is needed"},
		{map[string]string{"TURNSTONE_BASE_URL": "", "TURNSTONE_LISTEN": "[::]:8080"}, "TURNSTONE_BASE_URL is needed"},
		{map[string]string{"TURNSTONE_BASE_URL": "", "TURNSTONE_LISTEN": "10.0.0.7:8080"}, "TURNSTONE_BASE_URL is needed"},
		{map[string]string{"TURNSTONE_BASE_URL": "", "TURNSTONE_LISTEN": "chat.example.org:8080"}, "TURNSTONE_BASE_URL is needed"},
		{map[string]string{"DATABASE_URL": ""}, "DATABASE_URL is needed"},
		{map[string]string{"REDIS_URL": ""}, "REDIS_URL is needed"},
		{map[string]string{"TURNSTONE_SECRET": ""}, "TURNSTONE_SECRET is needed"},
		{map[string]string{"TURNSTONE_SECRET": strings.Repeat("ab", 30)}, "too simple"},
		{map[string]string{"TURNSTONE_SECRET": goodSecret + "," + goodSecret + "," + goodSecret}, "3 values"},
	} {
		environment := with(c.change)
		maps.DeleteFunc(environment, func(_, value string) bool { return value == "" })
		config, _, err := Load(environment)
		if err == nil {
			err = config.CheckServe()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.change, err, c.want)
		}
	}
	for _, listen := range []string{"127.0.0.1:8080", "localhost:8080", "[::1]:8080"} {
		environment := with(map[string]string{"TURNSTONE_LISTEN": listen})
		delete(environment, "TURNSTONE_BASE_URL")
		config, _, err := Load(environment)
		if err == nil {
			err = config.CheckServe()
		}
		if err != nil {
			t.Errorf("%s without a base URL: %v", listen, err)
		}
	}
	for _, base := range []string{"http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080", "https://chat.example.org"} {
		config, _, err := Load(with(map[string]string{"TURNSTONE_BASE_URL": base}))
		if err == nil {
			err = config.CheckServe()
		}
		if err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestTheURLOfTheSandboxOriginIsDerivedOnlyForBrowsersOfThisComputer(t *testing.T) {
	const note = "artifacts are shown but do not run: TURNSTONE_CONTENT_URL is not set"
	for _, c := range []struct{ base, listen, address, want string }{
		{"http://127.0.0.1:8080", "127.0.0.1:8082", "", "http://127.0.0.1:8082"},
		{"http://127.0.0.1:8080", "off", "", ""},
		{"https://chat.example.org", "127.0.0.1:8082", "", ""},
		{"https://chat.example.org", "127.0.0.1:8082", "https://usercontent.example.net", "https://usercontent.example.net"},
		{"https://chat.example.org", "10.0.0.11:8082", "https://usercontent.example.net", "https://usercontent.example.net"},
	} {
		environment := map[string]string{"TURNSTONE_BASE_URL": c.base, "TURNSTONE_CONTENT_LISTEN": c.listen}
		if c.address != "" {
			environment["TURNSTONE_CONTENT_URL"] = c.address
		}
		config, _, err := Load(environment)
		if err == nil {
			err = config.Check()
		}
		if err != nil || config.Service.ContentURL.String() != c.want || slices.Contains(config.Notes(), note) != (c.want == "") {
			t.Errorf("%v: %s, %v, notes %q", c, config.Service.ContentURL, err, config.Notes())
		}
	}
	for want, environment := range map[string]map[string]string{
		"TURNSTONE_CONTENT_URL is needed": {"TURNSTONE_BASE_URL": "https://chat.example.org", "TURNSTONE_CONTENT_LISTEN": "10.0.0.11:8082"},
		"other computers cannot reach":    {"TURNSTONE_BASE_URL": "https://chat.example.org", "TURNSTONE_CONTENT_URL": "https://usercontent.localhost"},
		"browsers would not load it":      {"TURNSTONE_BASE_URL": "https://chat.example.org", "TURNSTONE_CONTENT_URL": "http://usercontent.example.net"},
		"must have another origin":        {"TURNSTONE_BASE_URL": "https://chat.example.org", "TURNSTONE_CONTENT_URL": "https://chat.example.org"},
	} {
		config, _, err := Load(environment)
		if err == nil {
			err = config.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", environment, err, want)
		}
	}
}

func TestBaseURLDefaultsToTheListenAddress(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", ":9000": "http://127.0.0.1:9000", "[::1]:7": "http://[::1]:7",
	} {
		config, _, err := Load(map[string]string{"TURNSTONE_LISTEN": listen})
		if err == nil {
			err = config.Check()
		}
		if err != nil || config.Service.BaseURL.String() != want {
			t.Errorf("%s: %s, %v", listen, config.Service.BaseURL, err)
		}
	}
}

func TestSecretsComeFromFilesThatOnlyTheirOwnerReads(t *testing.T) {
	dir := t.TempDir()
	private, open, empty := filepath.Join(dir, "private"), filepath.Join(dir, "open"), filepath.Join(dir, "empty")
	for path, mode := range map[string]os.FileMode{private: 0o600, open: 0o644} {
		if err := os.WriteFile(path, []byte(goodSecret+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	environment := minimalEnvironment()
	delete(environment, "TURNSTONE_SECRET")
	environment["TURNSTONE_SECRET_FILE"] = private
	environment["TURNSTONE_MODEL_API_KEY_FILE"] = private
	environment["TURNSTONE_OIDC_CORP_ISSUER"], environment["TURNSTONE_OIDC_CORP_CLIENT_ID"] = "https://id.example.org", "turnstone"
	environment["TURNSTONE_OIDC_CORP_CLIENT_SECRET_FILE"] = private
	config, warnings, err := Load(environment)
	if err != nil {
		t.Fatal(err)
	}
	if string(config.Access.Secret[0]) != goodSecret || config.Model.APIKey != goodSecret || config.OIDC["corp"].ClientSecret != goodSecret {
		t.Error("a secret was not read from its file")
	}
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	for _, path := range []string{open, empty, filepath.Join(dir, "missing"), dir} {
		environment["TURNSTONE_SECRET_FILE"] = path
		if _, _, err := Load(environment); err == nil || !strings.Contains(err.Error(), "TURNSTONE_SECRET_FILE") {
			t.Errorf("%s: %v", path, err)
		}
	}
	environment["TURNSTONE_SECRET_FILE"], environment["TURNSTONE_SECRET"] = private, goodSecret
	if _, _, err := Load(environment); err == nil || !strings.Contains(err.Error(), "both set") {
		t.Errorf("both: %v", err)
	}
}

func TestUnknownNamesAreWarnings(t *testing.T) {
	_, warnings, err := Load(with(map[string]string{"TURNSTONE_LISTN": "x", "TURNSTONE_LISTEN_FILE": "y", "OTHER_LISTN": "z"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "TURNSTONE_LISTEN_FILE") || !strings.Contains(warnings[1], "TURNSTONE_LISTN") {
		t.Errorf("warnings: %v", warnings)
	}
}

func TestProvidersOfOpenIDConnectAreReadByTheirNames(t *testing.T) {
	config, _, err := Load(with(map[string]string{
		"TURNSTONE_OIDC_CORP_ISSUER": "https://id.example.org", "TURNSTONE_OIDC_CORP_CLIENT_ID": "one",
		"TURNSTONE_OIDC_MY_SCHOOL_ISSUER": "https://school.example.org", "TURNSTONE_OIDC_MY_SCHOOL_CLIENT_ID": "two",
		"TURNSTONE_OIDC_MY_SCHOOL_SCOPES": "openid,email",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(config.OIDC)); !slices.Equal(got, []string{"corp", "my-school"}) {
		t.Fatalf("providers: %v", got)
	}
	if scopes := config.OIDC["my-school"].Scopes; !slices.Equal(scopes, []string{"openid", "email"}) {
		t.Errorf("scopes: %v", scopes)
	}
	if scopes := config.OIDC["corp"].Scopes; !slices.Contains(scopes, "openid") {
		t.Errorf("default scopes: %v", scopes)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"30/1m burst 10": {30, time.Minute, 10}, "30/m": {30, time.Minute, 30}, "5/15m": {5, 15 * time.Minute, 5}, " 20/1h  burst  3 ": {20, time.Hour, 3},
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q parses as %+v, %v", text, got, err)
		}
		var again Rate
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q prints as %q, which is %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "30", "/1m", "30/", "-1/1m", "0/1m", "30/0s", "30/1m burst", "30/1m burst 0", "30/1m rush 3", "x/1m", "30/x"} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted as %s", text, got)
		}
	}
}

func TestPrintShowsNoSecret(t *testing.T) {
	config, _, err := Load(with(map[string]string{
		"TURNSTONE_MODEL_API_KEY": "sk-hidden", "TURNSTONE_OIDC_CORP_ISSUER": "https://id.example.org", "TURNSTONE_OIDC_CORP_CLIENT_ID": "me",
		"TURNSTONE_OIDC_CORP_CLIENT_SECRET": "hidden-too", "TURNSTONE_MIGRATE_DATABASE_URL": "postgres:///db?user=x&password=hidden",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Print(&out, &config); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hidden") || strings.Contains(out.String(), goodSecret) {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
	for _, line := range []string{
		"TURNSTONE_LISTEN=127.0.0.1:8080\n", "TURNSTONE_SECRET=[set]\n", "TURNSTONE_OIDC_CORP_CLIENT_ID=me\n", "TURNSTONE_DRAIN_GRACE=25s\n",
		"TURNSTONE_BASE_URL=https://chat.example.org\n", "DATABASE_URL=postgres://turnstone:xxxxx@db.example.org/turnstone\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in:\n%s", line, out.String())
		}
	}
}

// TestTheReferencePageIsComplete checks that every setting is documented and that the committed page is the one that
// the code generates.
func TestTheReferencePageIsComplete(t *testing.T) {
	var page bytes.Buffer
	if err := Document(&page); err != nil {
		t.Fatal(err)
	}
	for _, one := range settings(&Config{}) {
		if one.name == "" || one.help == "" || !strings.Contains(page.String(), "`"+one.name+"`") {
			t.Errorf("%q is not documented", one.name)
		}
	}
	committed, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, page.Bytes()) {
		t.Error("docs/configuration.md differs from the output of `turnstone config doc`: run make generate")
	}
}

func TestModelHeadersAreMaskedAndExcludeTheAPIKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(file, []byte("X-Team: blue\nAuthorization: Basic sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, warnings, err := Load(with(map[string]string{"TURNSTONE_MODEL_HEADERS_FILE": file}))
	if err == nil {
		err = config.CheckServe()
	}
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	models, err := config.Models()
	if err != nil {
		t.Fatal(err)
	}
	headers := models.Clients[0].Config.Client.Headers
	if len(headers) != 2 || headers.Get("X-Team") != "blue" || headers.Get("Authorization") != "Basic sesame" {
		t.Errorf("headers %v", headers)
	}
	printed := new(bytes.Buffer)
	if err := Print(printed, &config); err != nil || !strings.Contains(printed.String(), "TURNSTONE_MODEL_HEADERS=[set]\n") || strings.Contains(printed.String(), "sesame") {
		t.Errorf("%v:\n%s", err, printed)
	}
	for _, name := range []string{"authorization", "x-api-key"} {
		config, _, err := Load(with(map[string]string{"TURNSTONE_MODEL_HEADERS": name + ": sesame", "TURNSTONE_MODEL_API_KEY": "key"}))
		if err == nil {
			err = config.Check()
		}
		if err == nil || !strings.Contains(err.Error(), "TURNSTONE_MODEL_HEADERS") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s together with the API key: %v", name, err)
		}
	}
}

func TestModelsThatAcceptImagesAreNamed(t *testing.T) {
	config, _, err := Load(with(map[string]string{
		"TURNSTONE_MODEL_PROVIDER": "openai", "TURNSTONE_MODEL_BALANCED": "small", "TURNSTONE_MODEL_CODING": "large", "TURNSTONE_MODEL_IMAGES": "large,small",
	}))
	if err == nil {
		err = config.Check()
	}
	if err != nil || len(config.Model.Images) != 2 || config.Model.Images[0] != "large" {
		t.Errorf("%v, %v", config.Model.Images, err)
	}
}

func TestAClusterNeedsItsCertificatesAndAnAddressThatOtherNodesReach(t *testing.T) {
	files := map[string]string{
		"TURNSTONE_CLUSTER_CA_FILE": "/ca.crt", "TURNSTONE_CLUSTER_CERT_FILE": "/node.crt", "TURNSTONE_CLUSTER_KEY_FILE": "/node.key",
		"TURNSTONE_FILES_DIR": "/shared",
	}
	load := func(change map[string]string) (Config, error) {
		environment := with(files)
		maps.Copy(environment, change)
		maps.DeleteFunc(environment, func(_, value string) bool { return value == "" })
		config, _, err := Load(environment)
		if err == nil {
			err = config.Check()
		}
		return config, err
	}
	const listen, advertise = "TURNSTONE_CLUSTER_LISTEN", "TURNSTONE_CLUSTER_ADVERTISE"
	for _, c := range []struct {
		change map[string]string
		want   string
	}{
		{map[string]string{listen: "10.0.0.7:7946"}, "10.0.0.7:7946"},
		{map[string]string{listen: "[fd00::7]:7946"}, "[fd00::7]:7946"},
		{map[string]string{listen: "node-1.example.org:7946"}, "node-1.example.org:7946"},
		{map[string]string{listen: ":7946", advertise: "node-1:1234"}, "node-1:1234"},
		{map[string]string{listen: "0.0.0.0:7946", advertise: "10.0.0.7:7946"}, "10.0.0.7:7946"},
	} {
		if config, err := load(c.change); err != nil || config.Cluster.Advertise != c.want {
			t.Errorf("%v: %q, %v", c.change, config.Cluster.Advertise, err)
		}
	}
	for _, c := range []struct {
		change map[string]string
		want   string
	}{
		{map[string]string{listen: "10.0.0.7:7946", "TURNSTONE_FILES_DIR": ""}, "TURNSTONE_S3_BUCKET, or TURNSTONE_FILES_DIR"},
		{map[string]string{listen: ":7946"}, "TURNSTONE_CLUSTER_ADVERTISE is needed with TURNSTONE_CLUSTER_LISTEN=:7946"},
		{map[string]string{listen: "[::]:7946"}, "TURNSTONE_CLUSTER_ADVERTISE is needed"},
		{map[string]string{listen: ":7946", advertise: "0.0.0.0:7946"}, "cannot connect"},
		{map[string]string{listen: ":7946", advertise: "10.0.0.7"}, "TURNSTONE_CLUSTER_ADVERTISE: invalid address"},
		{map[string]string{listen: "10.0.0.7:0"}, "TURNSTONE_CLUSTER_LISTEN: invalid address"},
		{map[string]string{listen: "10.0.0.7:node"}, "TURNSTONE_CLUSTER_LISTEN: invalid address"},
		{map[string]string{listen: "a node:7946"}, "TURNSTONE_CLUSTER_LISTEN: invalid address"},
		{map[string]string{listen: "10.0.0.7:7946", "TURNSTONE_CLUSTER_CA_FILE": ""}, "TURNSTONE_CLUSTER_CA_FILE is needed"},
		{map[string]string{listen: "10.0.0.7:7946", "TURNSTONE_CLUSTER_CERT_FILE": ""}, "TURNSTONE_CLUSTER_CERT_FILE is needed"},
		{map[string]string{listen: "10.0.0.7:7946", "TURNSTONE_CLUSTER_KEY_FILE": ""}, "TURNSTONE_CLUSTER_KEY_FILE is needed"},
		{nil, "is set without TURNSTONE_CLUSTER_LISTEN"},
	} {
		if _, err := load(c.change); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", c.change, err, c.want)
		}
	}
}

func TestTheSettingsOfMailFitTogether(t *testing.T) {
	const server, sender = "smtps://me:hidden@mail.example.org", "Turnstone <no-reply@example.org>"
	for _, test := range []struct {
		url, from, file string
		want            string // the name of the variable in the error; empty: the settings are valid
	}{
		{server, sender, "", ""},
		{"smtp://localhost:1025", "no-reply@example.org", "", ""},
		{server, "", "", "TURNSTONE_SMTP_FROM is needed"},
		{server, "nobody", "", "TURNSTONE_SMTP_FROM: "},
		{"https://me:hidden@mail.example.org", sender, "", "TURNSTONE_SMTP_URL: "},
		{"me:hidden@mail.example.org", sender, "", "TURNSTONE_SMTP_URL: "},
		{server, sender, "/no/file", "TURNSTONE_SMTP_CA_FILE: "},
		{"", sender, "", "without TURNSTONE_SMTP_URL"},
	} {
		config, _, err := Load(with(map[string]string{"TURNSTONE_SMTP_URL": test.url, "TURNSTONE_SMTP_FROM": test.from, "TURNSTONE_SMTP_CA_FILE": test.file}))
		if err == nil {
			err = config.CheckServe()
		}
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%+v: %v", test, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hidden")):
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestSecretValuesHasEverySecret(t *testing.T) {
	config, _, err := Load(with(map[string]string{
		"TURNSTONE_SECRET": goodSecret + ",another0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd", "TURNSTONE_MODEL_API_KEY": "sk-hidden", "TURNSTONE_MODEL_HEADERS": "X-Key: header-hidden",
		"TURNSTONE_OIDC_CORP_ISSUER": "https://id.example.org", "TURNSTONE_OIDC_CORP_CLIENT_ID": "me", "TURNSTONE_OIDC_CORP_CLIENT_SECRET": "oidc-hidden",
		"TURNSTONE_MIGRATE_DATABASE_URL": "postgres:///db?user=x&password=query-hidden", "REDIS_URL": "redis://x:p%40ss@cache.example.org:6379",
		"TURNSTONE_MODEL_BASE_URL": "https://me:gateway-hidden@models.example.org/v1",
		"TURNSTONE_SMTP_URL":       "smtps://me:mail%2Fhidden@mail.example.org",
	}))
	if err != nil {
		t.Fatal(err)
	}
	values := config.SecretValues()
	for _, want := range []string{
		goodSecret, "another0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd", "sk-hidden", "header-hidden", "oidc-hidden", "hidden", "query-hidden", "p@ss", "p%40ss", "gateway-hidden", "mail/hidden", "mail%2Fhidden",
	} {
		if !slices.Contains(values, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if slices.Contains(values, "") || slices.Contains(values, "me") {
		t.Errorf("%q", values)
	}
	printed := new(bytes.Buffer)
	if err := Print(printed, &config); err != nil || strings.Contains(printed.String(), "hidden") {
		t.Errorf("%v: %s", err, printed)
	}
}

func TestSearchProvidersNeedTheirSettings(t *testing.T) {
	for providers, name := range map[string]string{"searxng": "TURNSTONE_SEARCH_SEARXNG_URL", "bundled,brave": "TURNSTONE_SEARCH_BRAVE_KEY", "tavily": "TURNSTONE_SEARCH_TAVILY_KEY", "bundled,bundled": "TURNSTONE_SEARCH_PROVIDERS"} {
		config, _, err := Load(with(map[string]string{"TURNSTONE_SEARCH_PROVIDERS": providers}))
		if err == nil {
			err = config.CheckServe()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", providers, err)
		}
	}
	environment := with(map[string]string{
		"TURNSTONE_SEARCH_PROVIDERS": "brave, searxng", "TURNSTONE_SEARCH_SEARXNG_URL": "http://u:hidden@searxng:8080", "TURNSTONE_SEARCH_BRAVE_KEY": "hidden-key", "TURNSTONE_WEB_ALLOW": "wiki.example.org,10.1.0.0/16",
	})
	config, _, err := Load(environment)
	if err == nil {
		err = config.CheckServe()
	}
	var shown bytes.Buffer
	if err != nil || Print(&shown, &config) != nil || strings.Contains(shown.String(), "hidden") || !strings.Contains(shown.String(), "TURNSTONE_SEARCH_PROVIDERS=brave,searxng\nTURNSTONE_SEARCH_SEARXNG_URL=http://u:xxxxx@searxng:8080\nTURNSTONE_SEARCH_BRAVE_KEY=[set]") ||
		!strings.Contains(shown.String(), "TURNSTONE_WEB_ALLOW=wiki.example.org,10.1.0.0/16\n") {
		t.Errorf("%v: %s", err, shown.String())
	}
}

func TestTheServerForSpeechNeedsAnAddressAndAModel(t *testing.T) {
	const url, key, model = "TURNSTONE_TRANSCRIPTION_URL", "TURNSTONE_TRANSCRIPTION_KEY", "TURNSTONE_TRANSCRIPTION_MODEL"
	for _, one := range []struct {
		set   map[string]string
		names string // in the error; "": none
	}{
		{map[string]string{}, ""},
		{map[string]string{url: "http://whisper:8000/v1", model: "base"}, ""},
		{map[string]string{url: "http://whisper:8000/v1"}, model},
		{map[string]string{url: "whisper:8000", model: "base"}, url},
		{map[string]string{key: "secret"}, url},
		{map[string]string{model: "base"}, url},
	} {
		config, _, err := Load(with(one.set))
		if err == nil {
			err = config.CheckServe()
		}
		if err == nil != (one.names == "") || err != nil && (!strings.Contains(err.Error(), one.names) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v: %v", one.set, err)
		}
	}
}
