import { defineConfig } from "vitest/config";
import { faultTests, settings } from "./vitest.faults.config";

// All tests in a real Chromium except those that kill or freeze the service. They use accounts of their own and do not
// affect each other, so their files run in parallel.
export default defineConfig({
  test: { ...settings, include: ["browser/**/*.test.ts"], exclude: faultTests, fileParallelism: true, maxWorkers: 3 },
});
