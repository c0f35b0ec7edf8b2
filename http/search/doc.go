// Package search has the handlers of searches. They hold no state; package persistence/search finds and ranks.
package search
