import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { SentAt } = await import("./actions");

test("the time of a message is short, and in full on hover and for screen readers", () => {
  const shown = renderToString(<SentAt at="2026-03-01T12:30:00Z" />);
  const [, full] = /title="([^"]+)"/.exec(shown)!;
  expect(full).toMatch(/March 1, 2026/);
  expect(shown).toContain('<time dateTime="2026-03-01T12:30:00Z"');
  expect(shown).toContain(`<span class="sr-only">${full}</span>`);
  expect(shown).toMatch(/<span aria-hidden="true">\d+:30\s[AP]M<\/span>/);
});
