import { defineConfig } from "vitest/config";

// For make bench-web, which measures the app in a real Chromium and writes the results to docs/benchmarks.md.
export default defineConfig({
  test: {
    include: ["bench/**/*.bench.ts"],
    environment: "node",
    testTimeout: 900_000,
    hookTimeout: 120_000,
    fileParallelism: false,
    reporters: ["dot"],
  },
});
