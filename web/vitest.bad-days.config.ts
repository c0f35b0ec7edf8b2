import { defineConfig } from "vitest/config";

/** What a test in a real Chromium, against a running service, may take; cmd/turnstone/browser starts both. */
export const patience = {
  environment: "node",
  testTimeout: 180_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 40_000 } },
  chaiConfig: { truncateThreshold: 0 },
} as const;

/** The tests that kill or freeze the service. */
export const badDays = ["browser/hard-days.test.ts"];

// One file after the other: nobody else may depend on that service.
export default defineConfig({ test: { ...patience, include: badDays, fileParallelism: false } });
