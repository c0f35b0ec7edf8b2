// Package settings reads the configuration of the service from environment variables: one struct with defaults, help
// and validation, from which the reference page is generated too.
//
// It opens nothing and connects to nothing. No other package reads the environment.
package settings
