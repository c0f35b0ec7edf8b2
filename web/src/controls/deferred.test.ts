import { expect, test } from "vitest";

const sources = import.meta.glob<string>("../**/*.tsx", { query: "?raw", import: "default", eager: true });

test("components that are loaded later use deferred, not Suspense, which delays them by 0.3 s", () => {
  expect(Object.keys(sources).length).toBeGreaterThan(20);
  const delayed = Object.entries(sources).filter(([, code]) => /\b(lazy|Suspense)\b[^;]*from "react"/.test(code));
  expect(delayed.map(([path]) => path)).toEqual([]);
});
