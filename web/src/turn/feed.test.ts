import { describe, expect, test } from "vitest";
import { followFeed, type FeedItem } from "./feed";

const item = (n: number): FeedItem => ({
  type: "conversation.changed",
  id: `conv_${n}`,
  at: "2026-01-01T00:00:00.000Z",
  version: n,
});

/** A response with the items from..to; the cursor of item n is "c<n>". */
function stream(from: number, to: number): Response {
  let text = "retry: 2000\n\n: \n\n";
  for (let n = from; n <= to; n++) text += `id: c${n}\nevent: x\ndata: ${JSON.stringify(item(n))}\n\n`;
  return new Response(text);
}

const problem = (status: number, headers: Record<string, string> = {}) =>
  Response.json({ status, code: "x" }, { status, headers });

/** Follows the feed. respond returns the response to each connection, given its number; a 401 ends the test. */
async function following(respond: (connection: number) => Response | Error, after: string | null = null) {
  const seen = {
    items: [] as string[],
    cursors: [] as string[],
    open: [] as boolean[],
    paths: [] as string[],
    pauses: [] as number[],
  };
  await followFeed(
    after,
    {
      items: (items, cursor) => {
        seen.items.push(...items.map(({ id }) => id!));
        seen.cursors.push(cursor);
      },
      open: (open) => void seen.open.push(open),
    },
    new AbortController().signal,
    {
      fetch: (input) => {
        seen.paths.push(String(input));
        const response = respond(seen.paths.length - 1);
        return response instanceof Error ? Promise.reject(response) : Promise.resolve(response);
      },
      pause: (ms) => {
        seen.pauses.push(ms);
        return Promise.resolve();
      },
    },
  );
  return seen;
}

describe("following the feed", () => {
  test("a broken connection is resumed after the last item, so that every item arrives once", async () => {
    const responses = [stream(1, 3), new Error("no network"), problem(503), stream(4, 5), problem(401)];
    const seen = await following((n) => responses[n]!);
    expect(seen.items).toEqual(["conv_1", "conv_2", "conv_3", "conv_4", "conv_5"]);
    expect(seen.paths).toEqual([
      "/events",
      "/events?after=c3",
      "/events?after=c3",
      "/events?after=c3",
      "/events?after=c5",
    ]);
    expect(seen.cursors.at(-1)).toBe("c5");
    expect(seen.open.at(-1)).toBe(false);
  });

  test("without a cursor, the feed is connected once the first item was received", async () => {
    const reports: string[] = [];
    const responses = [stream(1, 1), stream(2, 2), problem(401)];
    await followFeed(
      null,
      { items: (items) => reports.push(...items.map(({ id }) => id!)), open: (open) => reports.push(String(open)) },
      new AbortController().signal,
      { fetch: () => Promise.resolve(responses.shift()!), pause: () => Promise.resolve() },
    );
    expect(reports).toEqual(["conv_1", "true", "false", "true", "conv_2", "false", "false"]);
  });

  test("a cursor that the service does not accept is given up", async () => {
    const responses = [problem(422), stream(1, 1), problem(401)];
    const seen = await following((n) => responses[n]!, "of-another-account");
    expect(seen.paths).toEqual(["/events?after=of-another-account", "/events", "/events?after=c1"]);
  });

  test("a refused connection waits for as long as the service asks", async () => {
    const responses = [problem(429, { "Retry-After": "30" }), problem(401)];
    const seen = await following((n) => responses[n]!);
    expect(seen.pauses).toEqual([30_000]);
  });
});
