import { defineConfig } from "vitest/config";
import { hangGuard } from "./browser/hang-guard";

/** Settings of the tests in a real Chromium against a running service; tests/browser starts both. */
export const settings = {
  environment: "node",
  isolate: false, // the files that run in one process use one browser
  testTimeout: 7 * hangGuard, // a test waits for several conditions; see hang-guard.ts
  hookTimeout: hangGuard,
  expect: { poll: { timeout: hangGuard } },
  chaiConfig: { truncateThreshold: 0 },
} as const;

/** The tests that kill or freeze the service. They run against a service of their own. */
export const faultTests = ["browser/faults.test.ts"];

/** The tests that open links of mails. They run against a service of their own, which sends mails. */
export const mailTests = ["browser/mail.test.ts"];

// Files run one after the other, because no other test may use the service meanwhile.
export default defineConfig({ test: { ...settings, include: faultTests, fileParallelism: false } });
