//go:build failpoint

package failpoint

import (
	"context"
	"errors"
	"testing"
)

func TestAHoldLastsUntilItsNameIsLetGo(t *testing.T) {
	if err := Hold(t.Context(), "one"); err != nil {
		t.Errorf("nobody holds it: %v", err)
	}
	HoldAt("one")
	HoldAt("one")
	held := make(chan error, 1)
	go func() { held <- Hold(t.Context(), "one") }()
	LetGo("another")
	select {
	case err := <-held:
		t.Fatalf("another name was let go: %v", err)
	default:
	}
	LetGo("one")
	LetGo("one")
	if err := <-held; err != nil {
		t.Error(err)
	}
	if err := Hold(t.Context(), "one"); err != nil {
		t.Errorf("let go before: %v", err)
	}
}

func TestAHoldEndsWithItsContext(t *testing.T) {
	HoldAt("two")
	t.Cleanup(func() { LetGo("two") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Hold(ctx, "two"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
