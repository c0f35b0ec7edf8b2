package model

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/clock"
)

func TestUsedUpCreditIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		client, err := NewClient("openai", "http://127.0.0.1:1", Options{Log: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 1, 2} {
			client.creditUsedUp(&llm.Error{Code: protocol.ModelCreditUsedUp})
			if logs.Len() != want {
				t.Errorf("%d lines, want %d", logs.Len(), want)
			}
			_ = clock.Sleep(t.Context(), creditInterval/2+time.Second)
		}
	})
}
