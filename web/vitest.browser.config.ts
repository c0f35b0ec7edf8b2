import { defineConfig } from "vitest/config";

// The tests in a real Chromium, against a running service: cmd/turnstone/browser starts both. One file after the other,
// since some of them kill the service.
export default defineConfig({
  test: { include: ["browser/**/*.test.ts"], environment: "node", testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false, expect: { poll: { timeout: 20_000 } } },
});
