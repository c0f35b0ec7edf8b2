import { afterEach, describe, expect, test, vi } from "vitest";
import type { TurnEvent } from "../generated/events";
import { foldTurn, openTurn } from "./fold";
import { follow, type ConnectionState } from "./follow";
import { framesOf } from "./stream.fake";
import { random, randomTurn } from "./turn.fake";

interface Seen {
  events: TurnEvent[];
  links: ConnectionState[];
  pauses: number[];
  cursors: number[];
}

/** Follows a turn. respond returns the response to each connection, given its number and its cursor. */
async function following(
  respond: (connection: number, after: number, signal: AbortSignal) => Response | Error | Promise<Response>,
  after = 0,
): Promise<Seen> {
  const seen: Seen = { events: [], links: [], pauses: [], cursors: [] };
  const stop = new AbortController();
  await follow(
    "turn_1",
    after,
    { events: (events) => seen.events.push(...events), link: (link) => seen.links.push(link) },
    stop.signal,
    {
      fetch: (input, init) => {
        const cursor = Number(/after=(\d+)$/.exec(String(input))![1]);
        seen.cursors.push(cursor);
        const response = respond(seen.cursors.length - 1, cursor, init!.signal!);
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

/** A response whose body is the bytes, in chunks. */
function stream(bytes: Uint8Array, chunk = 64): Response {
  let at = 0;
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(at, (at += chunk)));
      },
    }),
  );
}

const problem = (status: number, headers: Record<string, string> = {}) =>
  Response.json({ status, code: "x" }, { status, headers });

describe("following a turn", () => {
  afterEach(() => void vi.useRealTimers());

  test("a connection cut at any byte is resumed after the last event, without a gap or a repetition", async () => {
    const events = randomTurn(random(11), "turn_1");
    const whole = foldTurn(openTurn("turn_1"), events);
    const all = framesOf(events);
    for (let cut = 0; cut <= all.length; cut += 1) {
      const seen = await following((connection, after) =>
        connection === 0
          ? stream(all.slice(0, cut), 512)
          : stream(framesOf(events.filter((event) => event.sequence > after)), 4_096),
      );
      expect(
        seen.events.map((event) => event.sequence),
        `cut at ${cut}`,
      ).toEqual(events.map((event) => event.sequence));
      expect(seen.links.at(-1)).toBe("ended");
      if (cut % 97 === 0) expect(foldTurn(openTurn("turn_1"), seen.events)).toEqual(whole);
    }
  });

  test("connections that break repeatedly deliver every event once", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const next = random(seed);
      const events = randomTurn(next, "turn_1");
      const seen = await following((_, after) => {
        if (next(5) === 0) return new TypeError("Failed to fetch");
        if (next(6) === 0) return problem(503);
        const rest = framesOf(events.filter((event) => event.sequence > after));
        return stream(next(3) === 0 ? rest : rest.slice(0, next(rest.length + 1)), 1 + next(40));
      });
      expect(
        seen.events.map((event) => event.sequence),
        `seed ${seed}`,
      ).toEqual(events.map((event) => event.sequence));
    }
  });

  test("a 204 response means that the turn has ended", async () => {
    const seen = await following(() => new Response(null, { status: 204 }), 40);
    expect(seen.cursors).toEqual([40]);
    expect(seen.links).toEqual(["connecting", "ended"]);
  });

  test.each([
    [401, "signed_out"],
    [404, "gone"],
    [409, "stale"],
  ] as const)("status %i is reported as %s, and the request is not repeated", async (status, link) => {
    const seen = await following(() => problem(status));
    expect(seen.links.at(-1)).toBe(link);
    expect(seen.cursors.length).toBe(1);
  });

  test("an unreachable service is not retried before Retry-After, and the pauses grow up to a limit", async () => {
    const events = randomTurn(random(5), "turn_1");
    const seen = await following((connection) =>
      connection === 0
        ? problem(503, { "Retry-After": "7" })
        : connection < 9
          ? new TypeError("Failed to fetch")
          : stream(framesOf(events)),
    );
    expect(seen.pauses[0]).toBeGreaterThanOrEqual(7_000);
    expect(Math.max(...seen.pauses.slice(1))).toBeLessThanOrEqual(8_000);
    expect(seen.pauses.slice(4).every((ms) => ms >= 2_000)).toBe(true);
    expect(seen.links).toContain("waiting");
    expect(seen.links.at(-1)).toBe("ended");
  });

  test("a stream that ends before its turn, for example on a draining node, is resumed without a pause", async () => {
    const events = randomTurn(random(5), "turn_1");
    const seen = await following((connection, after) =>
      stream(framesOf(connection === 0 ? events.slice(0, 3) : events.filter((event) => event.sequence > after))),
    );
    expect(seen.cursors).toEqual([0, 3]);
    expect(seen.pauses).toEqual([]);
  });

  test("a connection without data counts as lost; a heartbeat is data", async () => {
    vi.useFakeTimers();
    const events = randomTurn(random(5), "turn_1");
    let cancelled = false;
    let silentStream: ReadableStreamDefaultController<Uint8Array>;
    const silent = new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          silentStream = controller;
          controller.enqueue(framesOf(events.slice(0, 2)));
        },
        cancel: () => void (cancelled = true),
      }),
    );
    const followed = following((connection, after) =>
      connection === 0 ? silent : stream(framesOf(events.filter((event) => event.sequence > after))),
    );
    await vi.advanceTimersByTimeAsync(19_000);
    silentStream!.enqueue(new TextEncoder().encode(": still here\n\n"));
    await vi.advanceTimersByTimeAsync(19_000);
    expect(cancelled).toBe(false);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(cancelled).toBe(true);
    const seen = await followed;
    expect(seen.cursors).toEqual([0, 2]);
    expect(seen.events.map((event) => event.sequence)).toEqual(events.map((event) => event.sequence));
  });

  test("a request without a response is aborted and repeated", async () => {
    vi.useFakeTimers();
    const events = randomTurn(random(5), "turn_1");
    const never = (signal: AbortSignal) =>
      new Promise<Response>((_, reject) =>
        signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError"))),
      );
    const followed = following((connection, _, signal) =>
      connection === 0 ? never(signal) : stream(framesOf(events)),
    );
    await vi.advanceTimersByTimeAsync(20_500);
    const seen = await followed;
    expect(seen.cursors).toEqual([0, 0]);
    expect(seen.links).toContain("waiting");
    expect(seen.links.at(-1)).toBe("ended");
  });

  test("no events or links are reported after following is stopped", async () => {
    const events = randomTurn(random(5), "turn_1");
    const stop = new AbortController();
    const received: TurnEvent[] = [];
    let links = 0;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(framesOf(events.slice(0, 2))),
    });
    const done = follow(
      "turn_1",
      0,
      { events: (batch) => void (received.push(...batch), stop.abort()), link: () => void links++ },
      stop.signal,
      {
        fetch: () => Promise.resolve(new Response(body)),
        pause: () => Promise.resolve(),
      },
    );
    await done;
    expect(received.length).toBe(2);
    expect(links).toBe(2);
  });
});
