// Text of sources in a report: a page may contain Markdown or HTML that loads something from another site when it is shown.
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import type { KeptSource } from "./queries";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { ReportContext } = await import("../../parts/cited");
const { Markdown } = await import("../../parts/markdown");
const { SourceContent } = await import("./source");

const hostile =
  'A tide [a](https://evil.example/a) ![x](https://evil.example/p.png) <img src="https://evil.example/q.png" onerror="run()"> ' +
  '<style>@import "https://evil.example/s.css"</style> [b](javascript:run()) rises [1].';

/** Expects that what is shown loads nothing, and that its only addresses of others are in links. */
function expectInert(shown: string): void {
  expect(shown).not.toMatch(/<(img|picture|video|audio|iframe|object|embed|link|style|script|source|svg[^>]*href)\b/i);
  expect(shown).not.toMatch(/<[^>]*\s(src|srcset|style|poster|background|on\w+)=/i);
  expect(shown).not.toMatch(/(href|src)="javascript:/i);
  for (const [link] of shown.matchAll(/<a\b[^>]*evil\.example[^>]*>/g))
    expect(link).toContain('rel="noopener noreferrer nofollow"');
}

test("the sentences of a report load nothing from other sites", () => {
  const Citation = ({ number }: { number: number }) => <button type="button">Source {number}</button>;
  for (const text of [hostile, `## ${hostile}`, `> ${hostile}`, `- ${hostile}`, `| a |\n| - |\n| ${hostile} |`]) {
    const shown = renderToString(
      <ReportContext value={{ conversation: "conv_1", report: "msg_1", Citation }}>
        <Markdown text={text} streaming={false} />
      </ReportContext>,
    ).replaceAll("<!-- -->", "");
    expectInert(shown);
    expect(shown).toContain("&lt;img src=");
    expect(shown).toContain("Source 1</button>");
  }
});

test("titles, excerpts and places of sources are text", () => {
  const source: KeptSource = {
    source_id: "s1",
    number: 1,
    kind: "web",
    title: hostile,
    url: "https://evil.example/page",
    file_id: null,
    conversation_id: null,
    accessed_at: "2026-03-01T12:30:00Z",
    sha256: "ab",
    excerpts: [{ excerpt_id: "s1e1", text: hostile, locator: hostile }],
  };
  for (const url of [source.url, "javascript:run()", null]) {
    const shown = renderToString(<SourceContent source={{ ...source, url }} hash />);
    expectInert(shown);
    expect(shown.split("&lt;img src=")).toHaveLength(4);
    expect(shown.match(/<a /g) ?? []).toHaveLength(url === source.url ? 1 : 0);
  }
});
