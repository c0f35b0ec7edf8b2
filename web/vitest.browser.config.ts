import { defineConfig } from "vitest/config";
import { badDays, patience } from "./vitest.bad-days.config";

// All tests in a real Chromium but those that kill the service. They have accounts of their own and disturb nobody.
export default defineConfig({
  test: { ...patience, include: ["browser/**/*.test.ts"], exclude: badDays, fileParallelism: true, maxWorkers: 3 },
});
