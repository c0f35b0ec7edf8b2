package settings

import (
	"encoding/json"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
)

// SecretValues returns every configured secret, and the passwords of URLs as they are written and as they are meant.
func (c *Config) SecretValues() []string {
	list := settings(c)
	for _, provider := range c.OIDC {
		list = append(list, settingsOf("", "", reflect.ValueOf(&provider).Elem())...)
	}
	var values []string
	for _, one := range list {
		switch value := one.value.Interface().(type) {
		case Secrets:
			for _, secret := range value {
				values = append(values, string(secret))
			}
		case modelHeaders:
			for _, headers := range value.Header {
				for _, header := range headers {
					values = append(values, headerSecrets(header)...)
				}
			}
		case string:
			if one.secret == "true" {
				values = append(values, value)
			} else {
				values = append(values, passwordsOf(value)...)
			}
			if one.secret == "url" {
				values = append(values, passwordOfQuery(value)...)
			}
		}
	}
	values = append(values, c.modelSecrets()...)
	return slices.DeleteFunc(values, func(value string) bool { return value == "" })
}

// passwordsOf returns the password of a URL as it is meant and as it is written; nothing if it has none.
func passwordsOf(address string) []string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.User == nil {
		return nil
	}
	password, _ := parsed.User.Password()
	_, rest, _ := strings.Cut(address, "//")
	_, written, _ := strings.Cut(rest[:max(0, strings.Index(rest, "@"))], ":")
	return []string{password, written}
}

// passwordOfQuery returns the password that Postgres accepts as a parameter of its URL.
func passwordOfQuery(address string) []string {
	parsed, err := url.Parse(address)
	if err != nil || !parsed.Query().Has("password") {
		return nil
	}
	password := parsed.Query().Get("password")
	return []string{password, url.QueryEscape(password)}
}

// modelSecrets returns the keys and headers of the file, the passwords of its proxies, and the members of the bodies whose
// names are those of secrets. It reads what it can of a file with errors, because such a file has secrets, too.
func (c *Config) modelSecrets() (values []string) {
	text, err := os.ReadFile(c.Model.Config)
	if err != nil || len(text) > maxModelFile {
		return nil
	}
	var file ModelFile
	_ = json.Unmarshal(text, &file)
	for _, list := range file.lists() {
		for i := range *list.routes {
			route := &(*list.routes)[i]
			values = append(values, route.APIKey)
			if key, err := ReadSecret(route.APIKeyFile); err == nil {
				values = append(values, key)
			}
			for _, value := range route.Headers {
				values = append(values, headerSecrets(value)...)
			}
			values = append(values, passwordsOf(route.Proxy)...)
			for name, value := range route.Extra {
				values = appendNamedSecrets(values, name, value)
			}
		}
	}
	return values
}

// headerSecrets returns the value of a header, and the token behind the name of a scheme, for example Bearer.
func headerSecrets(value string) []string {
	values := []string{value}
	if scheme, token, found := strings.Cut(value, " "); found && !strings.Contains(token, " ") && validScheme.MatchString(scheme) {
		values = append(values, token)
	}
	return values
}

// appendNamedSecrets appends the texts in a member of JSON whose own name, or that of a member around it, is that of a
// secret.
func appendNamedSecrets(values []string, name string, raw json.RawMessage) []string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if secretName.MatchString(name) {
			values = append(values, text)
		}
		return values
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for inner, value := range members {
			values = appendNamedSecrets(values, name+"."+inner, value)
		}
		return values
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements)
	for _, value := range elements {
		values = appendNamedSecrets(values, name, value)
	}
	return values
}
