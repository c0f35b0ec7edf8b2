package clustertest

import (
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
)

// Log returns the logger of a test, which drops what is logged after the test has ended. Connections of protoactor-go log
// their end from goroutines of their own, and a test cannot wait for these.
func Log(t testing.TB) *zap.Logger {
	out := &untilEnd{to: zaptest.NewTestingWriter(t)}
	t.Cleanup(func() {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.ended = true
	})
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), out, zap.DebugLevel))
}

type untilEnd struct {
	to    zaptest.TestingWriter
	mu    sync.Mutex
	ended bool // guarded by mu
}

// Write implements zapcore.WriteSyncer.
func (u *untilEnd) Write(line []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return len(line), nil
	}
	return u.to.Write(line)
}

// Sync implements zapcore.WriteSyncer.
func (u *untilEnd) Sync() error { return nil }
