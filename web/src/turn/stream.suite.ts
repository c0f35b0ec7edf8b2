// What the service does with the requests of followers: of turns, and of the account's feed. The stand-in of their tests passes
// this suite, and so does the service.
import { expect } from "vitest";

export interface Streaming {
  fetch(path: string, init?: { signal: AbortSignal }): Promise<Response>;
  /** Runs a turn to its end and returns its identifier. */
  finish(): Promise<string>;
  /** Makes the feed report something. */
  report(): Promise<void>;
}

interface Frame {
  id: string;
  event: string;
  data: { type: string; sequence?: number };
}

/** Reads frames until enough have arrived, or to the end of the stream. */
async function framesOf(response: Response, enough: (frames: Frame[]) => boolean = () => false): Promise<Frame[]> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const frames = text
      .split("\n\n")
      .slice(0, -1)
      .filter((frame) => !/^(:|retry:)/.test(frame)) // a heartbeat, or the pause before a reconnection
      .map((frame) => {
        const lines = /^id: (.+)\nevent: (.+)\ndata: (.+)$/.exec(frame);
        expect(lines, frame).not.toBeNull();
        return { id: lines![1]!, event: lines![2]!, data: JSON.parse(lines![3]!) as Frame["data"] };
      });
    if (enough(frames)) return frames;
    const { done, value } = await reader.read();
    if (done) return frames;
    text += value;
  }
}

export async function checkStreams(service: Streaming): Promise<void> {
  // A turn's events have their sequence as their cursor, without gaps, and the stream ends after the last one.
  const turn = await service.finish();
  const from = (after: number) => service.fetch(`/chat/turns/${turn}/events?after=${after}`);
  const whole = await from(0);
  expect(whole.headers.get("Content-Type")).toMatch(/^text\/event-stream/);
  const all = await framesOf(whole);
  expect(all.map(({ id }) => Number(id))).toEqual(all.map((_, at) => at + 1));
  expect(all.map(({ event, data }) => [event, data.sequence])).toEqual(all.map(({ data }, at) => [data.type, at + 1]));
  expect(all.at(-1)!.event).toBe("turn.finished");
  expect(await framesOf(await from(1))).toEqual(all.slice(1));
  // Nothing follows the end, and an unknown turn is none.
  expect((await from(all.length)).status).toBe(204);
  const unknown = await service.fetch(`/chat/turns/turn_00000000000000000000000001/events?after=0`);
  expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([404, "not_found"]);

  // The feed reports what happens after its beginning, or after a cursor.
  const ends = new AbortController();
  const beginning = await service.fetch("/events", { signal: ends.signal });
  const news = (frames: Frame[]) => frames.filter(({ event }) => event !== "feed.started");
  const reported = framesOf(beginning, (frames) => news(frames).length > 0);
  await service.report();
  const [first] = news(await reported);
  expect(first!.event).toBe(first!.data.type);
  await service.report();
  const later = await service.fetch(`/events?after=${first!.id}`, { signal: ends.signal });
  const after = news(await framesOf(later, (frames) => news(frames).length > 0));
  expect(after.map(({ id }) => id)).not.toContain(first!.id);
  expect(after[0]!.event).toBe(after[0]!.data.type);
  ends.abort();
}
