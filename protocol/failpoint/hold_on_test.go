//go:build failpoint

package failpoint

import (
	"context"
	"errors"
	"testing"
)

func TestAHoldLastsUntilItsNameIsReleased(t *testing.T) {
	if err := Hold(t.Context(), "one"); err != nil {
		t.Errorf("Hold of a name that is not held: %v", err)
	}
	HoldAt("one")
	HoldAt("one")
	held := make(chan error, 1)
	go func() { held <- Hold(t.Context(), "one") }()
	Release("another")
	select {
	case err := <-held:
		t.Fatalf("Hold returned after another name was released: %v", err)
	default:
	}
	Release("one")
	Release("one")
	if err := <-held; err != nil {
		t.Error(err)
	}
	if err := Hold(t.Context(), "one"); err != nil {
		t.Errorf("Hold of a released name: %v", err)
	}
}

func TestAHoldEndsWithItsContext(t *testing.T) {
	HoldAt("two")
	t.Cleanup(func() { Release("two") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Hold(ctx, "two"); !errors.Is(err, context.Canceled) {
		t.Errorf("Hold returned %v, want context.Canceled", err)
	}
}
