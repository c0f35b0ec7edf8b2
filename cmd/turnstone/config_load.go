package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

const (
	prefix     = "TURNSTONE_"
	fileSuffix = "_FILE"
	// secretMode has the bits that a file with a secret may not have: nobody but its owner reads it.
	secretMode = 0o177
	// maxSecretFile is far above any secret, and keeps a wrong path from filling memory.
	maxSecretFile = 64 << 10
)

// oidcName takes the names of a provider apart.
var oidcName = regexp.MustCompile(`^TURNSTONE_OIDC_([A-Z0-9]+(?:_[A-Z0-9]+)*?)_(ISSUER|CLIENT_ID|CLIENT_SECRET|CLIENT_SECRET_FILE|SCOPES)$`)

// setting is one name that an operator can set.
type setting struct {
	group, name, fallback, help, secret string
	value                               reflect.Value // in the Config that it was made of
}

// loadConfig reads the environment. Warnings are for names that look like ours and are not; an error is one line that
// names what is wrong.
func loadConfig(environment map[string]string) (config Config, warnings []string, err error) {
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

// settings lists what a Config has, in the order of its fields.
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

// withSecretFiles puts the contents of <NAME>_FILE where <NAME> would be.
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
		value, err := readSecret(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name+fileSuffix, err)
		}
		whole[name] = value
	}
	return whole, nil
}

// readSecret reads a file that nobody else can read.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecretFile {
		return "", fmt.Errorf("%s is no file with a secret", path)
	}
	if mode := info.Mode().Perm(); mode&secretMode != 0 {
		return "", fmt.Errorf("others may read %s (mode %04o): chmod 600 it", path, mode)
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

// parse fills a struct; its error names the variable and not our field.
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
		var wrong env.ParseError
		if !errors.As(one, &wrong) {
			lines = append(lines, one.Error())
			continue
		}
		name, secret := variableOf(reflect.TypeOf(into).Elem(), wrong.Name)
		reason := wrong.Err.Error()
		if _, ours := reflect.New(wrong.Type).Interface().(interface{ UnmarshalText([]byte) error }); !ours && secret == "" {
			reason = fmt.Sprintf("%q is no %s", environment[namePrefix+name], plainName(wrong.Type))
		}
		lines = append(lines, namePrefix+name+": "+reason)
	}
	return errors.New(strings.Join(lines, "; "))
}

// variableOf finds the name of the variable behind a field, by the name of the field.
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

// loadOIDC reads the providers; any number of them, each whole.
func loadOIDC(environment map[string]string) (map[string]OIDCConfig, error) {
	found := map[string]OIDCConfig{}
	for _, name := range oidcNames(environment) {
		var provider OIDCConfig
		namePrefix := prefix + "OIDC_" + name + "_"
		if err := parse(&provider, environment, namePrefix); err != nil {
			return nil, err
		}
		if provider.Issuer == "" || provider.ClientID == "" {
			return nil, fmt.Errorf("%sISSUER and %sCLIENT_ID are both needed", namePrefix, namePrefix)
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

// unknownNames warns of what looks like a setting and is none: most often a slip of the pen.
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
			warnings = append(warnings, name+" is set, and is no setting of this version")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// environmentOf makes a map of os.Environ; an empty value is the same as none.
func environmentOf(list []string) map[string]string {
	environment := make(map[string]string, len(list))
	for _, entry := range list {
		if name, value, found := strings.Cut(entry, "="); found && value != "" {
			environment[name] = value
		}
	}
	return environment
}
