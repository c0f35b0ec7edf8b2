import { defineConfig } from "vitest/config";

// make bench-web: measures the app in a real Chromium and writes what it found into docs/benchmarks.md.
export default defineConfig({
  test: { include: ["bench/**/*.bench.ts"], environment: "node", testTimeout: 900_000, hookTimeout: 120_000, fileParallelism: false, reporters: ["dot"] },
});
