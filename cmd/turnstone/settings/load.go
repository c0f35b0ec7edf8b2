package settings

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

const (
	prefix     = "TURNSTONE_"
	fileSuffix = "_FILE"
	// secretMode holds the permission bits that a file with a secret must not have: only its owner may read and write
	// it.
	secretMode = 0o177
	// maxSecretFile is far larger than any secret. It prevents a wrong path from filling memory.
	maxSecretFile = 64 << 10
)

// oidcName splits the name of an OIDC variable into the provider's name and the setting.
var oidcName = regexp.MustCompile(`^TURNSTONE_OIDC_([A-Z0-9]+(?:_[A-Z0-9]+)*?)_(ISSUER|CLIENT_ID|CLIENT_SECRET|CLIENT_SECRET_FILE|SCOPES)$`)

// setting is one environment variable that an operator can set.
type setting struct {
	group, name, fallback, help, secret string
	value                               reflect.Value // the field of the Config that the setting was read from
}

// Load reads the settings from the environment. warnings name variables that have our prefix but are not
// settings. err is one line that names the invalid variables.
func Load(environment map[string]string) (config Config, warnings []string, err error) {
	environment, err = withSecretFiles(environment, settings(&config))
	if err != nil {
		return Config{}, nil, err
	}
	if err := parse(&config, environment, ""); err != nil {
		return Config{}, nil, err
	}
	if config.OIDC, err = loadOIDC(environment); err != nil {
		return Config{}, nil, err
	}
	return config, unknownNames(environment), nil
}

// settings lists the settings of a Config in the order of its fields.
func settings(config *Config) []setting {
	var list []setting
	groups := reflect.ValueOf(config).Elem()
	for i := range groups.NumField() {
		if group := groups.Type().Field(i).Tag.Get("group"); group != "" {
			list = append(list, settingsOf(group, "", groups.Field(i))...)
		}
	}
	return list
}

func settingsOf(group, namePrefix string, fields reflect.Value) []setting {
	var list []setting
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		list = append(list, setting{
			group: group, name: namePrefix + tag.Get("env"), fallback: tag.Get("envDefault"), help: tag.Get("help"),
			secret: tag.Get("secret"), value: fields.Field(i),
		})
	}
	return list
}

// withSecretFiles returns a copy of the environment in which the content of the file named by <NAME>_FILE is the value
// of <NAME>.
func withSecretFiles(environment map[string]string, list []setting) (map[string]string, error) {
	whole := make(map[string]string, len(environment))
	for name, value := range environment {
		whole[name] = value
	}
	names := oidcSecrets(environment)
	for _, one := range list {
		if one.secret != "" {
			names = append(names, one.name)
		}
	}
	for _, name := range names {
		path := environment[name+fileSuffix]
		if path == "" {
			continue
		}
		if environment[name] != "" {
			return nil, fmt.Errorf("%s and %s are both set: leave one out", name, name+fileSuffix)
		}
		value, err := ReadSecret(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name+fileSuffix, err)
		}
		whole[name] = value
	}
	return whole, nil
}

// ReadSecret returns the trimmed content of a file. It refuses a file that others can access.
func ReadSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecretFile {
		return "", fmt.Errorf("%s is not a regular file, or is too large for a secret", path)
	}
	if mode := info.Mode().Perm(); mode&secretMode != 0 {
		return "", fmt.Errorf("%s has mode %04o, and only its owner may read it: run chmod 600 on it", path, mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(text))
	if value == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}

// GeneratedSecret is the file of the data folder in which dev stores the secret that it generates.
const GeneratedSecret = "secret"

// SigningSecret returns the configured secret that signs, or the one that dev generated in the data folder.
func (c *Config) SigningSecret() ([]byte, error) {
	if len(c.Access.Secret) > 0 {
		return c.Access.Secret[0], nil
	}
	text, err := ReadSecret(filepath.Join(c.Service.DataDir, GeneratedSecret))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("TURNSTONE_SECRET is not set, and the data folder has no secret from turnstone dev")
	}
	return []byte(text), err
}

// RandomText returns a secret with the given number of random bytes, as text.
func RandomText(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// parse fills the struct that into points to. Its error names the environment variables instead of the struct fields.
func parse(into any, environment map[string]string, namePrefix string) error {
	err := env.ParseWithOptions(into, env.Options{Environment: environment, Prefix: namePrefix})
	if err == nil {
		return nil
	}
	var lines []string
	var all env.AggregateError
	if !errors.As(err, &all) {
		all.Errors = []error{err}
	}
	for _, one := range all.Errors {
		var failed env.ParseError
		if !errors.As(one, &failed) {
			lines = append(lines, one.Error())
			continue
		}
		name, secret := variableOf(reflect.TypeOf(into).Elem(), failed.Name)
		reason := failed.Err.Error()
		if _, ours := reflect.New(failed.Type).Interface().(interface{ UnmarshalText([]byte) error }); !ours && secret == "" {
			reason = fmt.Sprintf("invalid value %q (want a %s)", environment[namePrefix+name], plainName(failed.Type))
		}
		lines = append(lines, namePrefix+name+": "+reason)
	}
	return errors.New(strings.Join(lines, "; "))
}

// variableOf returns the environment variable's name and its secret tag for the field with the given name.
func variableOf(of reflect.Type, field string) (name, secret string) {
	for i := range of.NumField() {
		one := of.Field(i)
		if one.Name == field && one.Tag.Get("env") != "" {
			return one.Tag.Get("env"), one.Tag.Get("secret")
		}
		if one.Type.Kind() == reflect.Struct && one.Tag.Get("group") != "" {
			if name, secret = variableOf(one.Type, field); name != "" {
				return name, secret
			}
		}
	}
	return "", ""
}

func plainName(of reflect.Type) string {
	if of.Kind() >= reflect.Int && of.Kind() <= reflect.Uint64 {
		return "whole number"
	}
	return of.String()
}

// loadOIDC reads the OIDC providers. There may be any number of them; each needs an issuer and a client ID.
func loadOIDC(environment map[string]string) (map[string]OIDC, error) {
	found := map[string]OIDC{}
	for _, name := range oidcNames(environment) {
		var provider OIDC
		namePrefix := prefix + "OIDC_" + name + "_"
		if err := parse(&provider, environment, namePrefix); err != nil {
			return nil, err
		}
		if provider.Issuer == "" || provider.ClientID == "" {
			return nil, fmt.Errorf("%sISSUER and %sCLIENT_ID are both required", namePrefix, namePrefix)
		}
		found[strings.ToLower(strings.ReplaceAll(name, "_", "-"))] = provider
	}
	return found, nil
}

func oidcNames(environment map[string]string) []string {
	var names []string
	for variable := range environment {
		if match := oidcName.FindStringSubmatch(variable); match != nil && !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return names
}

func oidcSecrets(environment map[string]string) []string {
	var names []string
	for _, name := range oidcNames(environment) {
		names = append(names, prefix+"OIDC_"+name+"_CLIENT_SECRET")
	}
	return names
}

// unknownNames returns a warning for every variable that has our prefix but is not a setting. Most of them are typing
// errors.
func unknownNames(environment map[string]string) []string {
	known := map[string]bool{}
	for _, one := range settings(&Config{}) {
		known[one.name] = true
		if one.secret != "" {
			known[one.name+fileSuffix] = true
		}
	}
	var warnings []string
	for name := range environment {
		if strings.HasPrefix(name, prefix) && !known[name] && !oidcName.MatchString(name) {
			warnings = append(warnings, name+" is set, but this version has no such setting")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// ParseEnvironment converts the list of os.Environ into a map. It treats an empty value as unset.
func ParseEnvironment(list []string) map[string]string {
	environment := make(map[string]string, len(list))
	for _, entry := range list {
		if name, value, found := strings.Cut(entry, "="); found && value != "" {
			environment[name] = value
		}
	}
	return environment
}
