// Package settings reads the configuration of the service from environment variables: one struct with defaults, help
// and validation, from which the reference page is generated too.
//
// It connects to nothing, and opens only the files that a setting names. No other package of the service reads settings from the
// environment: package main passes them here.
package settings
