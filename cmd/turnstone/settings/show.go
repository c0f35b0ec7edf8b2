package settings

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Print writes the effective configuration as lines of an environment file. Of a secret it shows only that it is
// set; a URL is shown without its password.
func Print(to io.Writer, config *Config) error {
	list := settings(config)
	for _, name := range slices.Sorted(keysOf(config.OIDC)) {
		provider := config.OIDC[name]
		list = append(list, settingsOf("", oidcVariable(name), reflect.ValueOf(&provider).Elem())...)
	}
	for _, one := range list {
		if _, err := fmt.Fprintf(to, "%s=%s\n", one.name, one.displayValue()); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(providers map[string]OIDC) func(func(string) bool) {
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

// displayValue returns the value for display, with secrets masked.
func (s setting) displayValue() string {
	text := fmt.Sprint(s.value.Interface())
	switch s.secret {
	case "":
		if parsed, err := url.Parse(text); err == nil && parsed.User != nil { // of a gateway, for example
			return parsed.Redacted()
		}
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

Turnstone is configured by environment variables only. This page is generated from the code
(` + "`turnstone config doc`" + `). ` + "`turnstone config check`" + ` validates the current environment, and
` + "`turnstone config print`" + ` prints the effective configuration with secrets masked.

Every secret can also be read from a file: set the variable with the suffix ` + "`_FILE`" + ` to the path of the file. Only the
file's owner may have access to it (mode 0600). A variable that starts with ` + "`TURNSTONE_`" + ` and is not listed here causes a
warning at startup. If a value is invalid, Turnstone exits with a one-line error message.
`

const docOIDC = `
## Sign-in with OpenID Connect

Any number of providers can be configured. Replace ` + "`<NAME>`" + ` with a name of your choice in upper case. In model routes it is the
` + "`{provider}`" + `, in lower case, with hyphens for underscores. Register the redirect URL ` + "`<TURNSTONE_BASE_URL>/auth/oidc/<name>/callback`" + `.
`

// Document writes docs/configuration.md.
func Document(to io.Writer) error {
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
	for _, one := range settingsOf("", prefix+"OIDC_<NAME>_", reflect.ValueOf(&OIDC{}).Elem()) {
		one.row(text)
	}
	documentModelFile(text)
	_, err := io.WriteString(to, text.String())
	return err
}

const tableHead = "| name | default | description |\n|---|---|---|\n"

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
