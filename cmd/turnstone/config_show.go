package main

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// printConfig writes what holds, as lines of an environment file; secrets are only said to be set.
func printConfig(to io.Writer, config *Config) error {
	list := settings(config)
	for _, name := range slices.Sorted(keysOf(config.OIDC)) {
		provider := config.OIDC[name]
		list = append(list, settingsOf("", oidcVariable(name), reflect.ValueOf(&provider).Elem())...)
	}
	for _, one := range list {
		if _, err := fmt.Fprintf(to, "%s=%s\n", one.name, one.shown()); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(providers map[string]OIDCConfig) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range providers {
			if !yield(name) {
				return
			}
		}
	}
}

func oidcVariable(name string) string {
	return prefix + "OIDC_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
}

// shown is the value without what must not be seen.
func (s setting) shown() string {
	text := fmt.Sprint(s.value.Interface())
	switch s.secret {
	case "":
		return strings.Trim(text, "[]")
	case "url":
		parsed, err := url.Parse(text)
		if err != nil {
			return mask(true)
		}
		if parsed.Query().Has("password") {
			parsed.RawQuery = ""
		}
		return parsed.Redacted()
	default:
		return mask(text != "")
	}
}

const docHead = `# Configuration

Turnstone is configured by its environment and by nothing else. This page is made from the code
(` + "`turnstone config doc`" + `); ` + "`turnstone config check`" + ` says whether the present environment is good, and
` + "`turnstone config print`" + ` shows what holds, without secrets.

Every secret can also come from a file, named by the same variable with ` + "`_FILE`" + ` behind it; the file must be readable
by its owner alone (mode 0600). A name that begins with ` + "`TURNSTONE_`" + ` and is not listed here is reported at the start; a
value that cannot be used ends the start with one line that says why.
`

const docOIDC = `
## Sign-in with OpenID Connect

Any number of providers, each under a name of your choice: ` + "`<NAME>`" + ` in capitals here is ` + "`{provider}`" + ` in the routes, in small
letters. The redirect address to register is ` + "`<TURNSTONE_BASE_URL>/auth/oidc/<name>/callback`" + `.
`

// documentConfig writes the reference page.
func documentConfig(to io.Writer) error {
	text := new(strings.Builder)
	text.WriteString(docHead)
	group := ""
	for _, one := range settings(&Config{}) {
		if one.group != group {
			group = one.group
			fmt.Fprintf(text, "\n## %s\n\n%s", group, tableHead)
		}
		one.row(text)
	}
	text.WriteString(docOIDC + "\n" + tableHead)
	for _, one := range settingsOf("", prefix+"OIDC_<NAME>_", reflect.ValueOf(&OIDCConfig{}).Elem()) {
		one.row(text)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

const tableHead = "| name | default | what it is |\n|---|---|---|\n"

func (s setting) row(to *strings.Builder) {
	name, fallback := "`"+s.name+"`", "none"
	if s.secret != "" {
		name += " (secret)"
	}
	if s.fallback != "" {
		fallback = "`" + s.fallback + "`"
	}
	fmt.Fprintf(to, "| %s | %s | %s |\n", name, fallback, s.help)
}
