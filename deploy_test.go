package turnstone_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// deployFiles returns the contents of the files below deploy, by path. Secrets that deploy/compose/secrets.sh created are not
// among them.
func deployFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("deploy", func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case at == "deploy/compose/secrets":
			return filepath.SkipDir
		case !entry.IsDir():
			files[filepath.ToSlash(at)] = readPage(t, at)
		}
		return nil
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files were found: %v", len(files), err)
	}
	return files
}

// documents returns the YAML documents of a file.
func documents(t *testing.T, at string) (list []map[string]any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(readPage(t, at)))
	for {
		var one map[string]any
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatalf("%s: %v", at, err)
		}
		list = append(list, one)
	}
}

// dig returns the value at a path of keys and indexes, nil if there is none.
func dig(value any, keys ...any) any {
	for _, key := range keys {
		switch of := value.(type) {
		case map[string]any:
			name, _ := key.(string)
			value = of[name]
		case []any:
			index, isIndex := key.(int)
			if !isIndex || index >= len(of) {
				return nil
			}
			value = of[index]
		default:
			return nil
		}
	}
	return value
}

// words returns the values of a list of strings.
func words(value any) (list []string) {
	items, _ := value.([]any)
	for _, item := range items {
		list = append(list, fmt.Sprint(item))
	}
	return list
}

// documentedSettings returns the names of docs/configuration.md, with whether they are secret.
func documentedSettings(t *testing.T) map[string]bool {
	t.Helper()
	rows := regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)`( \\(secret\\))? \\|").FindAllStringSubmatch(readPage(t, "docs/configuration.md"), -1)
	names := map[string]bool{}
	for _, row := range rows {
		names[row[1]] = row[2] != ""
	}
	if len(names) < 30 {
		t.Fatalf("only %d settings were found", len(names))
	}
	return names
}

// TestTheYAMLOfTheDeploymentParses reads every YAML file below deploy. The parser refuses a key that occurs twice.
func TestTheYAMLOfTheDeploymentParses(t *testing.T) {
	for at := range deployFiles(t) {
		if ext := path.Ext(at); (ext == ".yaml" || ext == ".yml") && len(documents(t, at)) == 0 {
			t.Errorf("%s is empty", at)
		}
	}
	for _, folder := range []string{"deploy/kubernetes/base", "deploy/kubernetes/overlays/example"} {
		listed := words(dig(documents(t, folder+"/kustomization.yaml")[0], "resources"))
		for _, resource := range listed {
			if _, err := os.Stat(path.Join(folder, resource)); err != nil {
				t.Errorf("%s lists %s: %v", folder, resource, err)
			}
		}
		files, err := filepath.Glob(folder + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := filepath.Base(file); name != "kustomization.yaml" && !slices.Contains(listed, name) {
				t.Errorf("%s does not list %s", folder, name)
			}
		}
	}
}

// TestTheDeploymentNamesOnlyExistingSettings checks every TURNSTONE_* name below deploy. Only a secret can be read from a file.
func TestTheDeploymentNamesOnlyExistingSettings(t *testing.T) {
	known, name := documentedSettings(t), regexp.MustCompile(`TURNSTONE_[A-Z0-9_]*[A-Z0-9]\b`)
	missing := map[string][]string{}
	for at, text := range deployFiles(t) {
		for _, found := range name.FindAllString(text, -1) {
			_, is := known[found]
			of, fromFile := strings.CutSuffix(found, "_FILE")
			if !is && (!fromFile || !known[of]) && !slices.Contains(missing[found], at) {
				missing[found] = append(missing[found], at)
			}
		}
	}
	for _, found := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s is not a setting; it is in %v", found, missing[found])
	}
}

// TestTheDeploymentHasNoSecrets checks that no file sets a secret to a value or contains a password or a key.
func TestTheDeploymentHasNoSecrets(t *testing.T) {
	password := regexp.MustCompile(`://[^/\s:"]*:([^@/\s]+)@`)
	value := regexp.MustCompile(`(?m)^[\s#-]*"?((?:TURNSTONE|AWS|GF|POSTGRES|DATABASE|REDIS|ROOT)_[A-Z0-9_]+)"?\s*[:=]\s*"?([^\s"]+)`)
	settings := documentedSettings(t)
	for at, text := range deployFiles(t) {
		if strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%s contains a private key", at)
		}
		for _, found := range password.FindAllStringSubmatch(text, -1) {
			if found[1] != "<password>" && !strings.HasPrefix(found[1], "$(<") {
				t.Errorf("%s contains a password: %s", at, found[0])
			}
		}
		for _, found := range value.FindAllStringSubmatch(text, -1) {
			hidden := settings[found[1]] || strings.HasSuffix(found[1], "PASSWORD") || strings.HasSuffix(found[1], "SECRET_KEY") || strings.HasSuffix(found[1], "SECRET_ACCESS_KEY")
			isName := strings.HasPrefix(found[2], "postgres://turnstone@") || strings.HasPrefix(found[2], "$(<")
			if hidden && !isName {
				t.Errorf("%s sets the secret %s", at, found[1])
			}
		}
	}
	if readPage(t, "deploy/compose/.gitignore") != "/secrets/\n" {
		t.Error("deploy/compose/secrets is not ignored by git")
	}
}

// TestTheDeploymentStopsNodesNoSoonerThanTheyDrain checks that everything that stops a node waits for its drain and its shutdown.
func TestTheDeploymentStopsNodesNoSoonerThanTheyDrain(t *testing.T) {
	shutdown := regexp.MustCompile(`StopTimeout = (\d+) \* time\.Second`).FindStringSubmatch(readPage(t, "cmd/turnstone/settings/config.go"))
	if shutdown == nil {
		t.Fatal("cmd/turnstone/settings/config.go has no StopTimeout")
	}
	rest, _ := time.ParseDuration(shutdown[1] + "s")
	grace := func(at, text string) time.Duration {
		found := regexp.MustCompile(`TURNSTONE_DRAIN_GRACE[=:] ?(\S+)`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not set TURNSTONE_DRAIN_GRACE", at)
		}
		parsed, err := time.ParseDuration(found[1])
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		return parsed
	}
	check := func(at string, have, want time.Duration) {
		if have < want {
			t.Errorf("%s waits %s until it kills a node, which may take %s", at, have, want)
		}
	}
	files := deployFiles(t)
	unit := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(files["deploy/systemd/turnstone.service"])
	if unit == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	have, err := time.ParseDuration(unit[1])
	if err != nil {
		t.Fatal(err)
	}
	const environment = "deploy/systemd/environment.example"
	check("deploy/systemd/turnstone.service", have, grace(environment, files[environment])+rest)

	const compose = "deploy/compose/compose.yaml"
	for name, node := range composeNodes(t) {
		have, err := time.ParseDuration(fmt.Sprint(dig(node, "stop_grace_period")))
		if err != nil {
			t.Fatal(err)
		}
		check(compose+": "+name, have, grace(compose, files[compose])+rest)
	}

	const settings, deployment = "deploy/kubernetes/base/settings.env", "deploy/kubernetes/base/deployment.yaml"
	pod := dig(documents(t, deployment)[0], "spec", "template", "spec")
	seconds, _ := dig(pod, "terminationGracePeriodSeconds").(int)
	sleep := words(dig(pod, "containers", 0, "lifecycle", "preStop", "exec", "command"))
	if len(sleep) != 2 || sleep[0] != "sleep" {
		t.Fatalf("preStop is %v", sleep)
	}
	pause, err := time.ParseDuration(sleep[1] + "s")
	if err != nil {
		t.Fatal(err)
	}
	check(deployment, time.Duration(seconds)*time.Second, pause+grace(settings, files[settings])+rest)
}

// composeNodes returns the services of the compose file that are nodes.
func composeNodes(t *testing.T) map[string]any {
	t.Helper()
	services, _ := dig(documents(t, "deploy/compose/compose.yaml")[0], "services").(map[string]any)
	nodes := map[string]any{}
	for name, service := range services {
		if regexp.MustCompile(`^turnstone-\d$`).MatchString(name) {
			nodes[name] = service
		}
	}
	if len(nodes) != 3 {
		t.Fatalf("the compose file has the nodes %v", slices.Sorted(maps.Keys(nodes)))
	}
	return nodes
}

// TestTheUnitsKeepWhatTheServiceNeeds checks the accounts of the units, and the lines without which the service or its readers of files
// would work differently.
func TestTheUnitsKeepWhatTheServiceNeeds(t *testing.T) {
	accounts := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^u (\S+)\s+- "([^":]+)"$`).FindAllStringSubmatch(readPage(t, "deploy/systemd/turnstone.sysusers"), -1) {
		accounts[found[1]] = true // systemd ignores an account whose description has a colon
	}
	for unit, want := range map[string][]string{
		"deploy/systemd/turnstone.service": {
			"User=turnstone", "ExecStart=/usr/local/bin/turnstone serve", "KillMode=mixed", "KillSignal=SIGTERM", "Restart=on-failure", "OOMPolicy=continue",
			"RestrictNamespaces=user net", "StateDirectory=turnstone", "PrivateTmp=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict",
		},
		"deploy/systemd/turnstone-migrate.service": {
			"User=turnstone-migrate", "ExecStart=/usr/local/bin/turnstone migrate", "Type=oneshot", "TimeoutStartSec=infinity", "NoNewPrivileges=yes", "CapabilityBoundingSet=",
		},
	} {
		text := readPage(t, unit)
		for _, line := range want {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s has no line %q", unit, line)
			}
		}
		if user := regexp.MustCompile(`(?m)^User=(.*)$`).FindStringSubmatch(text); user == nil || !accounts[user[1]] {
			t.Errorf("%s runs under %v, which is not one of %v", unit, user, slices.Sorted(maps.Keys(accounts)))
		}
	}
	if regexp.MustCompile(`(?m)^[^#]*MIGRATE_DATABASE_URL`).MatchString(readPage(t, "deploy/systemd/environment.example")) {
		t.Error("the running service gets the URL of the owner of the schema")
	}
	if strings.Contains(readPage(t, "deploy/systemd/turnstone.service"), "\nProcSubset=") {
		t.Error("without /proc/sys, Go accepts connections with a queue of 128")
	}
}

// TestProxiesDoNotBuffer checks the lines of the proxies on which streams and uploads depend.
func TestProxiesDoNotBuffer(t *testing.T) {
	for at, rules := range map[string]struct{ with, without []string }{
		"deploy/proxy/nginx.conf": {
			with: []string{
				"proxy_buffering off;", "proxy_request_buffering off;", "proxy_cache off;", "gzip off;", "client_max_body_size 0;", "proxy_http_version 1.1;",
				`proxy_set_header Connection "";`, "proxy_set_header Host $http_host;", "proxy_set_header X-Forwarded-For $remote_addr;", "listen 8443 ssl http2;",
				"proxy_next_upstream error timeout;",
			},
			without: []string{"proxy_buffering on", "gzip on", "$proxy_add_x_forwarded_for", "$request_uri\""},
		},
		"deploy/proxy/haproxy.cfg": {
			with: []string{
				"option http-no-delay", "http-request del-header X-Forwarded-For", "option forwardfor", "http-request disable-l7-retry unless { method GET HEAD }",
				"alpn h2,http/1.1", "http-check send meth GET uri /ready ver HTTP/1.1 hdr Host localhost", "use_backend turnstone_not_ready if { nbsrv(turnstone) eq 0 }",
			},
			without: []string{"option httplog", "filter compression", "compression algo", "on-marked-down shutdown-sessions"},
		},
		"deploy/proxy/Caddyfile": {
			with: []string{"flush_interval -1", "compression off", "method GET HEAD", "health_uri /health"},
			// Caddy buffers only with these, and replaces X-Forwarded-For unless proxies are trusted.
			without: []string{"request_buffers", "response_buffers", "buffer_requests", "buffer_responses", "trusted_proxies", "encode"},
		},
		"deploy/kubernetes/overlays/example/ingress.yaml": {
			with: []string{`/proxy-buffering: "off"`, `/proxy-request-buffering: "off"`, `/proxy-body-size: "0"`},
		},
	} {
		var lines []string // without comments
		for line := range strings.Lines(readPage(t, at)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
		text := strings.Join(lines, "\n")
		for _, want := range rules.with {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", at, want)
			}
		}
		for _, no := range rules.without {
			if strings.Contains(text, no) {
				t.Errorf("%s has %q", at, no)
			}
		}
	}
}

// TestProxiesWaitLongerThanHeartbeats checks the timeouts of silence, which must be longer than the pause between two heartbeats, and
// those of idle connections to nodes, which must be shorter than the node's own.
func TestProxiesWaitLongerThanHeartbeats(t *testing.T) {
	heartbeat := regexp.MustCompile(`heartbeat\s+= (\d+) \* time\.Second`).FindStringSubmatch(readPage(t, "http/sse/heartbeat.go"))
	idle := regexp.MustCompile(`idleTimeout\s+= (\d+) \* time\.Minute`).FindStringSubmatch(readPage(t, "http/listener/listener.go"))
	if heartbeat == nil || idle == nil {
		t.Fatal("the heartbeat or the idle timeout was not found")
	}
	beat, _ := strconv.Atoi(heartbeat[1])
	minutes, _ := strconv.Atoi(idle[1])
	for at, expressions := range map[string][]string{
		"deploy/proxy/nginx.conf":                         {`proxy_read_timeout (\d+)s;`, `send_timeout (\d+)s;`},
		"deploy/proxy/haproxy.cfg":                        {`timeout client (\d+)s`, `timeout server (\d+)s`},
		"deploy/proxy/Caddyfile":                          {`response_header_timeout (\d+)s`},
		"deploy/kubernetes/overlays/example/ingress.yaml": {`proxy-read-timeout: "(\d+)"`},
	} {
		for _, expression := range expressions {
			found := regexp.MustCompile(expression).FindStringSubmatch(readPage(t, at))
			if found == nil {
				t.Errorf("%s has no %s", at, expression)
				continue
			}
			if seconds, _ := strconv.Atoi(found[1]); seconds < 3*beat {
				t.Errorf("%s: %s, with a heartbeat after %d s", at, found[0], beat)
			}
		}
	}
	for at, expression := range map[string]string{"deploy/proxy/nginx.conf": `(?s)upstream turnstone .*?keepalive_timeout (\d+)s;`, "deploy/proxy/Caddyfile": `keepalive (\d+)s`} {
		found := regexp.MustCompile(expression).FindStringSubmatch(readPage(t, at))
		if found == nil {
			t.Errorf("%s does not limit idle connections", at)
			continue
		}
		if seconds, _ := strconv.Atoi(found[1]); seconds >= 60*minutes {
			t.Errorf("%s keeps idle connections for %d s, the service for %d minutes", at, seconds, minutes)
		}
	}
}

// TestThePortsOfTheDeploymentAgree checks that every file uses the same four ports.
func TestThePortsOfTheDeploymentAgree(t *testing.T) {
	ports := map[string]string{"TURNSTONE_LISTEN": "8080", "TURNSTONE_CONTENT_LISTEN": "8082", "TURNSTONE_INTERNAL_LISTEN": "9090", "TURNSTONE_CLUSTER_LISTEN": "7946", "TURNSTONE_CLUSTER_ADVERTISE": "7946"}
	address := regexp.MustCompile(`(TURNSTONE_(?:LISTEN|CONTENT_LISTEN|INTERNAL_LISTEN|CLUSTER_LISTEN|CLUSTER_ADVERTISE))(?:=|: "?|\n\s+value: )\S+?:(\d+)`)
	server := regexp.MustCompile(`turnstone-\d:(\d+)`)
	probe := regexp.MustCompile(`(?:check port|health_port) (\d+)`)
	count := 0
	for at, text := range deployFiles(t) {
		for _, found := range address.FindAllStringSubmatch(text, -1) {
			if count++; found[2] != ports[found[1]] {
				t.Errorf("%s has %s, want port %s", at, found[0], ports[found[1]])
			}
		}
		if path.Dir(at) != "deploy/proxy" {
			continue
		}
		for _, found := range server.FindAllStringSubmatch(text, -1) {
			if count++; found[1] != ports["TURNSTONE_LISTEN"] && found[1] != ports["TURNSTONE_CONTENT_LISTEN"] {
				t.Errorf("%s has %s", at, found[0])
			}
		}
		for _, found := range probe.FindAllStringSubmatch(text, -1) {
			if count++; found[1] != ports["TURNSTONE_INTERNAL_LISTEN"] {
				t.Errorf("%s has %s", at, found[0])
			}
		}
	}
	if count < 25 {
		t.Errorf("only %d addresses were found", count)
	}
	pod := dig(documents(t, "deploy/kubernetes/base/deployment.yaml")[0], "spec", "template", "spec", "containers", 0)
	names := map[string]string{}
	list, _ := dig(pod, "ports").([]any)
	for _, one := range list {
		names[fmt.Sprint(dig(one, "name"))] = fmt.Sprint(dig(one, "containerPort"))
	}
	if want := map[string]string{"http": "8080", "content": "8082", "internal": "9090", "cluster": "7946"}; !maps.Equal(names, want) {
		t.Errorf("the ports of the pod are %v, want %v", names, want)
	}
	for name, want := range map[string]string{"readinessProbe": "/ready?exclude=cache&exclude=object_storage&exclude=malware_scanning&exclude=model_access", "livenessProbe": "/health", "startupProbe": "/health"} {
		if dig(pod, name, "httpGet", "port") != "internal" || dig(pod, name, "httpGet", "path") != want {
			t.Errorf("%s is %v, want %s of the internal listener", name, dig(pod, name, "httpGet"), want)
		}
	}
	if exposed := regexp.MustCompile(`(?m)^EXPOSE (.*)$`).FindStringSubmatch(readPage(t, "deploy/container/Containerfile")); exposed == nil || exposed[1] != "8080 8082 9090 7946" {
		t.Errorf("the image exposes %v", exposed)
	}
}

// TestTheDeploymentServesTheSandboxOriginUnderItsOwnHost checks that every example has a listener, a URL and a rule of a proxy for
// the sandbox origin, that the app has another host than it, and that no cookies reach it.
func TestTheDeploymentServesTheSandboxOriginUnderItsOwnHost(t *testing.T) {
	files := deployFiles(t)
	for name, parts := range map[string][]string{
		"systemd":    {"deploy/systemd/environment.example"},
		"compose":    {"deploy/compose/compose.yaml"},
		"kubernetes": {"deploy/kubernetes/base/settings.env", "deploy/kubernetes/overlays/example/settings.env"},
	} {
		var text string
		for _, at := range parts {
			text += files[at]
		}
		host := func(setting string) string {
			found := regexp.MustCompile(`(?m)^ *` + setting + `[=:] ?\S*?https://([^\s}]+)`).FindStringSubmatch(text)
			if found == nil {
				t.Errorf("%s does not set %s", name, setting)
				return ""
			}
			return found[1]
		}
		if app, content := host("TURNSTONE_BASE_URL"), host("TURNSTONE_CONTENT_URL"); app == content || !strings.HasPrefix(content, "usercontent.") {
			t.Errorf("%s: the app has the host %s, the sandbox origin %s", name, app, content)
		}
		if !regexp.MustCompile(`(?m)^ *TURNSTONE_CONTENT_LISTEN[=:]`).MatchString(text) {
			t.Errorf("%s does not set TURNSTONE_CONTENT_LISTEN", name)
		}
	}
	for at, wants := range map[string][]string{
		"deploy/proxy/nginx.conf":   {"server_name usercontent.example.net;", "proxy_pass http://turnstone_content;", `proxy_set_header Cookie "";`, ":8082 "},
		"deploy/proxy/haproxy.cfg":  {"use_backend turnstone_content if { hdr_beg(host) -i usercontent. }", "backend turnstone_content\n", "http-request del-header Cookie", ":8082\n"},
		"deploy/proxy/Caddyfile":    {"\nusercontent.example.net {", "reverse_proxy turnstone-1:8082 ", "header_up -Cookie"},
		"deploy/compose/secrets.sh": {"DNS:usercontent.localhost"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[at], want) {
				t.Errorf("%s has no %q", at, want)
			}
		}
	}
	service := fmt.Sprint(dig(documents(t, "deploy/kubernetes/base/service.yaml")[0], "spec", "ports"))
	if !strings.Contains(service, "targetPort:content") {
		t.Errorf("the Service has the ports %s", service)
	}
	ingress := dig(documents(t, "deploy/kubernetes/overlays/example/ingress.yaml")[0], "spec")
	backends := map[string]string{}
	rules, _ := dig(ingress, "rules").([]any)
	for _, rule := range rules {
		backends[fmt.Sprint(dig(rule, "host"))] = fmt.Sprint(dig(rule, "http", "paths", 0, "backend", "service", "port", "name"))
	}
	if want := map[string]string{"chat.example.org": "http", "usercontent.example.net": "content"}; !maps.Equal(backends, want) {
		t.Errorf("the Ingress has %v, want %v", backends, want)
	}
	certificates, _ := dig(ingress, "tls").([]any)
	if names := fmt.Sprint(certificates); !strings.Contains(names, "[chat.example.org]") || !strings.Contains(names, "[usercontent.example.net]") {
		t.Errorf("the Ingress has the certificates %s", names)
	}
}

// TestOnlyTheirOwnPeersReachThePortsOfAPod checks the sources that the network policy allows for each port.
func TestOnlyTheirOwnPeersReachThePortsOfAPod(t *testing.T) {
	rules, _ := dig(documents(t, "deploy/kubernetes/base/network-policy.yaml")[0], "spec", "ingress").([]any)
	sources := map[string]string{}
	for _, rule := range rules {
		list, _ := dig(rule, "ports").([]any)
		for _, one := range list {
			if port := fmt.Sprint(dig(one, "port")); dig(rule, "from", 1) == nil && sources[port] == "" {
				sources[port] = fmt.Sprint(dig(rule, "from", 0))
			}
		}
	}
	want := map[string]string{
		"http":     "map[namespaceSelector:map[matchLabels:map[kubernetes.io/metadata.name:ingress-nginx]]]",
		"content":  "map[namespaceSelector:map[matchLabels:map[kubernetes.io/metadata.name:ingress-nginx]]]",
		"internal": "map[namespaceSelector:map[matchLabels:map[kubernetes.io/metadata.name:monitoring]]]",
		"cluster":  "map[podSelector:map[matchLabels:map[app.kubernetes.io/component:node app.kubernetes.io/name:turnstone]]]",
	}
	if len(rules) != 3 || !maps.Equal(sources, want) {
		t.Errorf("%d rules: %v", len(rules), sources)
	}
}

// TestContainersRunWithoutPrivileges checks every container of Kubernetes against the rules of a restricted namespace, and the nodes
// of the compose file.
func TestContainersRunWithoutPrivileges(t *testing.T) {
	for _, at := range []string{"deploy/kubernetes/base/deployment.yaml", "deploy/kubernetes/base/migrate-job.yaml"} {
		pod := dig(documents(t, at)[0], "spec", "template", "spec")
		if dig(pod, "securityContext", "runAsNonRoot") != true || dig(pod, "securityContext", "seccompProfile", "type") != "RuntimeDefault" || dig(pod, "automountServiceAccountToken") != false {
			t.Errorf("%s: the pod has %v", at, dig(pod, "securityContext"))
		}
		first, _ := dig(pod, "initContainers").([]any)
		second, _ := dig(pod, "containers").([]any)
		for _, container := range append(first, second...) {
			context := dig(container, "securityContext")
			if dig(context, "allowPrivilegeEscalation") != false || dig(context, "readOnlyRootFilesystem") != true || !slices.Equal(words(dig(context, "capabilities", "drop")), []string{"ALL"}) {
				t.Errorf("%s: container %v has %v", at, dig(container, "name"), context)
			}
			if dig(container, "resources", "limits", "memory") == nil || dig(container, "resources", "requests", "cpu") == nil {
				t.Errorf("%s: container %v has %v", at, dig(container, "name"), dig(container, "resources"))
			}
		}
	}
	for name, node := range composeNodes(t) {
		if dig(node, "read_only") != true || !slices.Equal(words(dig(node, "cap_drop")), []string{"ALL"}) || !slices.Contains(words(dig(node, "security_opt")), "no-new-privileges:true") {
			t.Errorf("the node %s has privileges", name)
		}
	}
}

// TestTheComposeFileIsComplete checks that what a service refers to is declared, and that secrets.sh creates every secret for the
// account that reads it.
func TestTheComposeFileIsComplete(t *testing.T) {
	file := documents(t, "deploy/compose/compose.yaml")[0]
	services, _ := file["services"].(map[string]any)
	script, created := readPage(t, "deploy/compose/secrets.sh"), map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)\bstore ([\w.-]+) "\$([A-Z]+)"`).FindAllStringSubmatch(script, -1) {
		created[found[1]] = found[2]
	}
	readers := map[string]string{
		"turnstone-1": "TURNSTONE", "turnstone-2": "TURNSTONE", "turnstone-3": "TURNSTONE", "migrate": "TURNSTONE", "postgres": "POSTGRES", "redis": "REDIS",
		"proxy": "PROXY", "grafana": "GRAFANA",
	}
	for name, service := range services {
		if dependencies, isMap := dig(service, "depends_on").(map[string]any); isMap {
			for other := range dependencies {
				if services[other] == nil {
					t.Errorf("%s depends on %s, which is not declared", name, other)
				}
			}
		}
		secrets, _ := dig(service, "secrets").([]any)
		for _, one := range secrets {
			secret := fmt.Sprint(one)
			if source := dig(one, "source"); source != nil {
				secret = fmt.Sprint(source)
			}
			from := fmt.Sprint(dig(file, "secrets", secret, "file"))
			below, inFolder := strings.CutPrefix(from, "secrets/")
			switch {
			case !inFolder:
				t.Errorf("%s reads the secret %s, which is not declared", name, secret)
			case path.Dir(below) == "cluster": // turnstone cluster certs creates them, under the account of the nodes
			case created[below] != readers[name] && secret != "postgres-password": // root of the image reads that one
				t.Errorf("%s reads %s, which secrets.sh creates for %q, want %q", name, from, created[below], readers[name])
			}
		}
		for _, volume := range words(dig(service, "volumes")) {
			source, _, _ := strings.Cut(volume, ":")
			isOthers := strings.HasPrefix(source, "../prometheus") || strings.HasPrefix(source, "../grafana") || strings.HasPrefix(source, "./secrets")
			if _, err := os.Stat("deploy/compose/" + source); source[0] == '.' && !isOthers && err != nil {
				t.Errorf("%s mounts %s: %v", name, source, err)
			}
			if declared, _ := file["volumes"].(map[string]any); source[0] != '.' {
				if _, is := declared[source]; !is {
					t.Errorf("%s mounts %s, which is not declared", name, source)
				}
			}
		}
		if image := fmt.Sprint(dig(service, "image")); !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
			t.Errorf("%s has the image %s, without a version", name, image)
		}
	}
	address := fmt.Sprint(dig(services["proxy"], "networks", "front", "ipv4_address"))
	for name, node := range composeNodes(t) {
		if trusted := dig(node, "environment", "TURNSTONE_TRUSTED_PROXIES"); trusted != address+"/32" {
			t.Errorf("%s trusts %v, but the proxy has the address %s", name, trusted, address)
		}
		if advertised := dig(node, "environment", "TURNSTONE_CLUSTER_ADVERTISE"); advertised != name+":7946" {
			t.Errorf("%s advertises %v", name, advertised)
		}
	}
}

// TestTheStoresOfTheComposeFileAreConfiguredAsThePagesSay compares the roles with docs/installation.md, and clamd with docs/files.md.
func TestTheStoresOfTheComposeFileAreConfiguredAsThePagesSay(t *testing.T) {
	statement := regexp.MustCompile(`(?m)^create (?:role|database) .*;$`)
	secret := regexp.MustCompile(`password (?:'[^']*'|:'[^']*')`)
	statements := func(at string) []string {
		return statement.FindAllString(secret.ReplaceAllString(readPage(t, at), "password"), -1)
	}
	page, file := statements("docs/installation.md"), statements("deploy/compose/postgres/roles.sql")
	if len(page) != 3 || !slices.Equal(page, file) {
		t.Errorf("the page has %q, the file %q", page, file)
	}
	block := regexp.MustCompile("(?s)```conf\n(.*?)```").FindStringSubmatch(readPage(t, "docs/files.md"))
	if block == nil {
		t.Fatal("docs/files.md has no configuration of clamd")
	}
	configured := readPage(t, "deploy/compose/clamav/clamd.conf")
	for line := range strings.Lines(block[1]) {
		if !strings.HasPrefix(line, "LocalSocket ") && !strings.Contains(configured, "\n"+line) {
			t.Errorf("deploy/compose/clamav/clamd.conf has no %q", line)
		}
	}
}

// TestTheImageHasTheBinaryOfARelease checks that the image is built with the flags of make release, and what else is in it.
func TestTheImageHasTheBinaryOfARelease(t *testing.T) {
	image, makefile := readPage(t, "deploy/container/Containerfile"), readPage(t, "Makefile")
	for _, flags := range []string{"CGO_ENABLED=0", "GOAMD64=v1 GOARM64=v8.0", "-trimpath -buildvcs=false", "-s -w -X main.buildSHA="} {
		if !strings.Contains(image, flags) || !strings.Contains(makefile, flags) {
			t.Errorf("make release and the image do not both have %q", flags)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readPage(t, "go.mod"))
	if version == nil || !strings.Contains(image, "FROM golang:"+version[1]+"-") {
		t.Errorf("the image is not built with the version of go.mod: %v", version)
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(image, -1)
	last := stages[len(stages)-1]
	installed := regexp.MustCompile(`apt-get install (.*) \\`).FindStringSubmatch(last)
	if len(stages) != 4 || installed == nil || installed[1] != "--yes --no-install-recommends ca-certificates poppler-data poppler-utils" {
		t.Errorf("%d stages; installed: %v", len(stages)-1, installed)
	}
	for _, line := range []string{"USER 10001:10001", "STOPSIGNAL SIGTERM", `ENTRYPOINT ["turnstone"]`, `CMD ["serve"]`} {
		if !strings.Contains(last, "\n"+line+"\n") {
			t.Errorf("the image has no line %q", line)
		}
	}
	if regexp.MustCompile(`(?m)^(?:ADD|SHELL|HEALTHCHECK) `).MatchString(image) {
		t.Error("the image has an instruction that it does not need")
	}
}

// TestTheDeploymentPageNamesExistingFiles checks the links and the paths of deploy/README.md.
func TestTheDeploymentPageNamesExistingFiles(t *testing.T) {
	page := readPage(t, "deploy/README.md")
	others := []string{"deploy/prometheus", "deploy/grafana"} // mounted by the compose file
	for _, found := range regexp.MustCompile(`\b(?:deploy|docs|cmd)/[\w./-]*\w`).FindAllString(page, -1) {
		if _, err := os.Stat(found); err != nil && !slices.Contains(others, found) {
			t.Errorf("deploy/README.md names %s: %v", found, err)
		}
	}
	for _, found := range regexp.MustCompile(`\]\((\.\./[^)#]+|[^)#:]+)\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(path.Join("deploy", found[1])); err != nil {
			t.Errorf("deploy/README.md links to %s: %v", found[1], err)
		}
	}
}
